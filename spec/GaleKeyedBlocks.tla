---------------------------- MODULE GaleKeyedBlocks ---------------------------
(***************************************************************************)
(* A budget with a key: each key has the whole limit in every window. As   *)
(* in GaleFederatedBlocks the coordinator may be lost and not know it, and *)
(* grants from units that it set aside before. One write sets units aside  *)
(* of all keys: base of each, and a mark of each group with a key that     *)
(* needs more. So the record does not grow with the number of keys.        *)
(*                                                                         *)
(* A memory counts Own keys of a window by themselves. Those that come     *)
(* later share one counter, Overflow. The memory that follows may count a  *)
(* key in the other way, so the record says whether keys shared a counter  *)
(* before any of them is granted a unit of it, and both count.             *)
(*                                                                         *)
(* A memory that hands over writes what it granted, and grants no more.    *)
(* Grants are final: a region that loses an answer forfeits its units.     *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Keys, Regions, Limit, Batch, Block,
          Own,       \* keys that a memory counts by themselves
          Changes,   \* memories that crash or hand over, at most
          Together,  \* TRUE: all counters are of one group
          Forgets,   \* TRUE takes a rule away: the record is not read
          Overtaken, \* ... a memory that was overtaken counts its own writes
          Lowers,    \* ... a write forgets the marks of those before
          Unnoted,   \* ... the record need not say that keys share a counter
          Apart      \* ... a key's other counter does not count

ASSUME /\ Limit \in Nat /\ Batch \in Nat \ {0} /\ Block \in Nat \ {0}
       /\ Own \in Nat \ {0} /\ Changes \in Nat
       /\ {Together, Forgets, Overtaken, Lowers, Unnoted, Apart} \subseteq BOOLEAN

Overflow == "overflow"
Counters == Keys \cup {Overflow}
Group(c) == IF Together THEN Overflow ELSE c
Groups == {Group(c) : c \in Counters}
Memories == 1..(Changes + 1)

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Largest(S) == CHOOSE n \in S : \A o \in S : o <= n

(* Units that are set aside of the open window.                            *)
Asides == [base : 0..(Changes + 1) * Block, mark : [Groups -> 0..Limit], shared : BOOLEAN]
Nothing == [base |-> 0, mark |-> [g \in Groups |-> 0], shared |-> FALSE]
Of(a, c) == Max(a.base, a.mark[Group(c)])

(* An Aside with another base, and marks as high as wants where that is    *)
(* more than the base.                                                     *)
Raised(a, base, wants, shared) ==
    [base |-> base,
     mark |-> [g \in Groups |-> IF wants[g] > base THEN Max(a.mark[g], wants[g]) ELSE a.mark[g]],
     shared |-> a.shared \/ shared]

VARIABLES term,    \* of the last memory
          ended,   \* of each memory: whether it handed over
          record,  \* what is set aside
          before,  \* of each memory: what it takes for granted by those before
          saved,   \* of each memory: what it knows to be set aside
          had,     \* of each memory: what it granted of each counter
          hand,    \* of each region: units of each key that are granted and not handed on
          admitted \* of each key, in the open window

vars == <<term, ended, record, before, saved, had, hand, admitted>>

TypeOK == /\ term \in Memories
          /\ ended \in [Memories -> BOOLEAN]
          /\ record \in Asides
          /\ before \in [Memories -> Asides]
          /\ saved \in [Memories -> Asides]
          /\ had \in [Memories -> [Counters -> 0..Limit]]
          /\ hand \in [Regions -> [Keys -> 0..Batch]]
          /\ admitted \in [Keys -> Nat]

Unknown == [m \in Memories |-> Nothing]
Ungranted == [m \in Memories |-> [c \in Counters |-> 0]]
Idle == [r \in Regions |-> [k \in Keys |-> 0]]

Init == /\ term = 1
        /\ ended = [m \in Memories |-> FALSE]
        /\ record = Nothing
        /\ before = Unknown /\ saved = Unknown
        /\ had = Ungranted
        /\ hand = Idle
        /\ admitted = [k \in Keys |-> 0]

-------------------------------------------------------------------------------

(* The counter of a key: its own where it has one or there is room.        *)
Counter(m, k) == IF had[m][k] > 0 \/ Cardinality({c \in Counters : had[m][c] > 0}) < Own
                 THEN k ELSE Overflow

(* What memories before may have granted of the key's other counter.       *)
Elsewhere(m, k) == IF Apart THEN 0
                   ELSE IF Counter(m, k) = Overflow THEN Of(before[m], k)
                   ELSE IF before[m].shared THEN Of(before[m], Overflow)
                   ELSE 0

Pool(m, k) == Max(0, Limit - Elsewhere(m, k))
Used(m, c) == Of(before[m], c) + had[m][c]
Left(m, k) == Pool(m, k) - Used(m, Counter(m, k))

Noted(m, c) == c # Overflow \/ saved[m].shared \/ Unnoted
Aside(m, c) == IF Noted(m, c) THEN Of(saved[m], c) - Used(m, c) ELSE 0

Serve(r, k) == /\ hand[r][k] > 0
               /\ hand' = [hand EXCEPT ![r][k] = @ - 1]
               /\ admitted' = [admitted EXCEPT ![k] = @ + 1]
               /\ UNCHANGED <<term, ended, record, before, saved, had>>

(* A memory that may have been overtaken grants what it has set aside.     *)
Lease(m, r, k) == /\ m <= term /\ ~ended[m]
                  /\ hand[r][k] = 0
                  /\ Left(m, k) >= Batch
                  /\ Aside(m, Counter(m, k)) >= Batch
                  /\ had' = [had EXCEPT ![m][Counter(m, k)] = @ + Batch]
                  /\ hand' = [hand EXCEPT ![r][k] = Batch]
                  /\ UNCHANGED <<term, ended, record, before, saved, admitted>>

(* Keys that are asked for and wait for a write.                           *)
Lacks(m, k) == Left(m, k) >= Batch /\ Aside(m, Counter(m, k)) < Batch
Want(m, k) == Min(Used(m, Counter(m, k)) + Max(Batch, Block), Pool(m, k))

(* One write for all of them. It never sets less aside than is.            *)
Written(m, S) ==
    LET wants == [g \in Groups |-> Largest({0} \cup {Want(m, k) : k \in {k \in S : Group(Counter(m, k)) = g}})]
        known == IF Lowers THEN [saved[m] EXCEPT !.mark = Nothing.mark] ELSE saved[m]
    IN  Raised(known, Max(saved[m].base, before[m].base + Block), wants,
               \E k \in S : Counter(m, k) = Overflow)

(* The compare-and-swap of any other memory than the last one fails.       *)
Reserve(m, S) == /\ ~ended[m]
                 /\ m = term \/ (Overtaken /\ m < term)
                 /\ S # {} /\ \A k \in S : Lacks(m, k)
                 /\ saved' = [saved EXCEPT ![m] = Written(m, S)]
                 /\ record' = IF m = term THEN Written(m, S) ELSE record
                 /\ UNCHANGED <<term, ended, before, had, hand, admitted>>

(* The next memory begins with a record.                                   *)
Begin(r) == /\ term <= Changes
            /\ term' = term + 1
            /\ record' = r
            /\ LET known == IF Forgets THEN Nothing ELSE r
               IN /\ before' = [before EXCEPT ![term + 1] = known]
                  /\ saved' = [saved EXCEPT ![term + 1] = known]
            /\ UNCHANGED <<had, hand, admitted>>

Crash == Begin(record) /\ UNCHANGED ended

Last(m) == Raised(before[m], before[m].base,
                  [g \in Groups |-> Largest({0} \cup {Used(m, c) : c \in {c \in Counters : Group(c) = g /\ had[m][c] > 0}})],
                  had[m][Overflow] > 0)

HandOver == Begin(Last(term)) /\ ended' = [ended EXCEPT ![term] = TRUE]

Roll == /\ record' = Nothing
        /\ before' = Unknown /\ saved' = Unknown
        /\ had' = Ungranted
        /\ hand' = Idle
        /\ admitted' = [k \in Keys |-> 0]
        /\ UNCHANGED <<term, ended>>

Next == \/ Roll
        \/ Crash
        \/ HandOver
        \/ \E m \in Memories, S \in SUBSET Keys : Reserve(m, S)
        \/ \E r \in Regions, k \in Keys : Serve(r, k) \/ \E m \in Memories : Lease(m, r, k)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0
             ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})

(* Whatever was granted of a counter is set aside in the record.           *)
Covered == \A c \in Counters : Sum([m \in Memories |-> had[m][c]], Memories) <= Of(record, c)

Overshoot == \A k \in Keys : admitted[k] <= Limit

(* What the last memory takes for granted of a counter, beyond what those  *)
(* before granted of the busiest counter of its group.                     *)
Earlier == 1..(term - 1)
Crashed == Cardinality({m \in Earlier : ~ended[m]})
Busiest(c) == Sum([m \in Earlier |-> Largest({had[m][o] : o \in {o \in Counters : Group(o) = Group(c)}})], Earlier)
Forfeited(c) == Of(before[term], c) - Busiest(c)

(* A crash forfeits a block of a counter, a hand-over nothing.             *)
Forfeit == \A c \in Counters : Forfeited(c) <= Crashed * Max(Batch, Block)

(* False on purpose.                                                       *)
OvershootTight == \A k \in Keys : admitted[k] <= Limit - 1
ForfeitTight == \A c \in Counters : Forfeited(c) <= Max(0, Crashed * Max(Batch, Block) - 1)

===============================================================================
