-------------------------- MODULE GaleFederatedBlocks -------------------------
(***************************************************************************)
(* GaleFederatedLeasing by a coordinator that may be lost at any time. It  *)
(* grants from its memory, but only what it set aside before in a record   *)
(* that outlives it. The memory that follows takes all that was set aside  *)
(* for granted. The one before may not know that it was overtaken: it goes *)
(* on granting what it had set aside, and sets nothing aside any more,     *)
(* since the record is written by compare-and-swap.                        *)
(*                                                                         *)
(* A region takes no answer of a memory before one that answered it.       *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS Regions, Limit, Batch, Block,
          Crashes, \* memories that are lost, at most
          Forgets  \* TRUE takes a rule away: the record is not read

ASSUME /\ Limit \in Nat /\ Batch \in Nat \ {0} /\ Block \in Nat \ {0}
       /\ Crashes \in Nat /\ Forgets \in BOOLEAN

Memories == 1..(Crashes + 1)

VARIABLES term,     \* of the last memory
          record,   \* units of the open window that are set aside
          before,   \* of each memory: what it takes for granted by those before
          reserved, \* of each memory: up to where it knows units to be set aside
          granted,  \* of each memory: what it granted itself
          seen,     \* of each region: the latest memory that answered it, 0 for none
          hand,     \* of each region: units granted and not handed on
          admitted  \* in the open window

vars == <<term, record, before, reserved, granted, seen, hand, admitted>>

Min(a, b) == IF a < b THEN a ELSE b

TypeOK == /\ term \in Memories
          /\ record \in 0..Limit
          /\ before \in [Memories -> 0..Limit]
          /\ reserved \in [Memories -> 0..Limit]
          /\ granted \in [Memories -> 0..Limit]
          /\ seen \in [Regions -> 0..(Crashes + 1)]
          /\ hand \in [Regions -> 0..Batch]
          /\ admitted \in Nat

None == [m \in Memories |-> 0]

Init == /\ term = 1
        /\ record = 0
        /\ before = None
        /\ reserved = None
        /\ granted = None
        /\ seen = [r \in Regions |-> 0]
        /\ hand = [r \in Regions |-> 0]
        /\ admitted = 0

Serve(r) == /\ hand[r] > 0
            /\ hand' = [hand EXCEPT ![r] = @ - 1]
            /\ admitted' = admitted + 1
            /\ UNCHANGED <<term, record, before, reserved, granted, seen>>

(* A memory that may have been overtaken grants what it has set aside.     *)
Lease(m, r) == /\ m <= term
               /\ m >= seen[r]
               /\ hand[r] = 0
               /\ before[m] + granted[m] + Batch <= reserved[m]
               /\ granted' = [granted EXCEPT ![m] = @ + Batch]
               /\ hand' = [hand EXCEPT ![r] = Batch]
               /\ seen' = [seen EXCEPT ![r] = m]
               /\ UNCHANGED <<term, record, before, reserved, admitted>>

(* The compare-and-swap of any other memory than the last one fails.       *)
Reserve == /\ reserved[term] < Limit
           /\ record' = Min(reserved[term] + Block, Limit)
           /\ reserved' = [reserved EXCEPT ![term] = record']
           /\ UNCHANGED <<term, before, granted, seen, hand, admitted>>

Crash == /\ term <= Crashes
         /\ term' = term + 1
         /\ LET known == IF Forgets THEN 0 ELSE record
            IN /\ before' = [before EXCEPT ![term + 1] = known]
               /\ reserved' = [reserved EXCEPT ![term + 1] = known]
         /\ UNCHANGED <<record, granted, seen, hand, admitted>>

Roll == /\ record' = 0
        /\ before' = None
        /\ reserved' = None
        /\ granted' = None
        /\ hand' = [r \in Regions |-> 0]
        /\ admitted' = 0
        /\ UNCHANGED <<term, seen>>

Next == \/ Roll
        \/ Reserve
        \/ Crash
        \/ \E r \in Regions : Serve(r) \/ \E m \in Memories : Lease(m, r)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

RECURSIVE Granted(_)
Granted(S) == IF S = {} THEN 0
              ELSE LET m == CHOOSE m \in S : TRUE IN granted[m] + Granted(S \ {m})

(* Whatever any memory granted is set aside in the record.                 *)
Covered == Granted(Memories) <= record

Overshoot == admitted <= Limit

(* False on purpose.                                                       *)
OvershootTight == admitted <= Limit - 1

===============================================================================
