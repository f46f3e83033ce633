---------------------------- MODULE GaleLeasedClock ---------------------------
(***************************************************************************)
(* GaleWindowCoupledLeasing by leaders that follow each other on nodes     *)
(* whose clocks differ and are set. Each leader serves by a clock of its   *)
(* own, which starts once and then never steps. The Lease of leader        *)
(* election says what that clock showed when it was renewed. A leader      *)
(* serves for Hold ticks after a renewal; a successor follows when that is *)
(* over, and its clock starts after all that was leased.                   *)
(*                                                                         *)
(* Windows are Window ticks of the leader's clock. Credits die with the    *)
(* window that they are charged to, by the clock of the leader that gave   *)
(* them, which holders carry on.                                           *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS Nodes,   \* holders
          Limit, Batch, Window, Hold,
          Terms,   \* leaders, at most
          Skew,    \* ticks by which a node's clock may be off, either way
          Horizon, \* ticks of true time
          Own,     \* TRUE takes a rule away: a successor starts at its node's clock
          Endless, \* TRUE: a leader serves beyond what it leased
          Unleased \* TRUE: the Lease says what the node's clock shows

ASSUME /\ {Limit, Batch, Window, Hold, Terms} \subseteq Nat \ {0}
       /\ {Skew, Horizon} \subseteq Nat
       /\ {Own, Endless, Unleased} \subseteq BOOLEAN

Leaders == 1..Terms
Indices == 0..((Terms * (Hold + 1) + 2 * Skew + 2 * Horizon) \div Window)

VARIABLES now,      \* true time
          term,     \* of the last leader
          off,      \* of each leader: its clock less true time
          began,    \* of each leader: what its clock showed when it knew nothing
          renewed,  \* of each leader: true time of its last renewal
          leased,   \* what the Lease says, and true time when it was written
          granted,  \* of each leader: units of the window that is open by its clock
          index,    \* of each leader: the window that granted is of
          held,     \* held[n]: credits, the leader that gave them, their window
          admitted  \* of each window

vars == <<now, term, off, began, renewed, leased, granted, index, held, admitted>>

Max(a, b) == IF a > b THEN a ELSE b

Clock(l) == now + off[l]
Open(l) == Clock(l) \div Window

Nothing == [units |-> 0, of |-> 1, index |-> 0]

Zero == [l \in Leaders |-> 0]

(* True time begins at Skew, so that no clock shows less than 0.           *)
Init == /\ now = Skew
        /\ term = 1
        /\ \E o \in (-Skew)..Skew : /\ off = [Zero EXCEPT ![1] = o]
                                    /\ leased = [clock |-> Skew + o, at |-> Skew]
        /\ began = [Zero EXCEPT ![1] = -1] \* nobody served before
        /\ renewed = [Zero EXCEPT ![1] = Skew]
        /\ granted = Zero
        /\ index = Zero
        /\ held = [n \in Nodes |-> Nothing]
        /\ admitted = [i \in Indices |-> 0]

(* The holder's clock has no say: a credit dies by the clock that gave it. *)
Dead(h) == h.units = 0 \/ Open(h.of) # h.index

Serves(l) == Endless \/ now < renewed[l] + Hold

Used(l) == IF index[l] = Open(l) THEN granted[l] ELSE 0

(* A window that began before the leader's clock did grants nothing.       *)
Lease(n, l) == /\ l <= term
               /\ Serves(l)
               /\ Dead(held[n])
               /\ Open(l) * Window > began[l]
               /\ Used(l) + Batch <= Limit
               /\ granted' = [granted EXCEPT ![l] = Used(l) + Batch]
               /\ index' = [index EXCEPT ![l] = Open(l)]
               /\ held' = [held EXCEPT ![n] = [units |-> Batch, of |-> l, index |-> Open(l)]]
               /\ UNCHANGED <<now, term, off, began, renewed, leased, admitted>>

Serve(n) == /\ ~Dead(held[n])
            /\ held' = [held EXCEPT ![n].units = @ - 1]
            /\ admitted' = [admitted EXCEPT ![held[n].index] = @ + 1]
            /\ UNCHANGED <<now, term, off, began, renewed, leased, granted, index>>

(* The write of a leader that was followed fails.                          *)
Renew == /\ renewed[term] # now
         /\ renewed' = [renewed EXCEPT ![term] = now]
         /\ \E wall \in (-Skew)..Skew :
               leased' = [clock |-> IF Unleased THEN now + wall ELSE Clock(term), at |-> now]
         /\ UNCHANGED <<now, term, off, began, granted, index, held, admitted>>

(* A leader crashes, or cannot renew: another one follows, whose node's    *)
(* clock is off by any amount.                                             *)
Follow == /\ term < Terms
          /\ now > leased.at + Hold
          /\ term' = term + 1
          /\ \E wall \in (-Skew)..Skew :
                LET start == IF Own THEN now + wall ELSE Max(now + wall, leased.clock + Hold)
                IN  /\ off' = [off EXCEPT ![term + 1] = start - now]
                    /\ began' = [began EXCEPT ![term + 1] = start]
                    /\ leased' = [clock |-> start, at |-> now]
          /\ renewed' = [renewed EXCEPT ![term + 1] = now]
          /\ UNCHANGED <<now, granted, index, held, admitted>>

(* One that stops in order hands over what it granted, and what its clock  *)
(* shows.                                                                  *)
HandOver == /\ term < Terms
            /\ now < renewed[term] + Hold
            /\ term' = term + 1
            /\ \E wall \in (-Skew)..Skew :
                  LET start == IF Own THEN now + wall ELSE Max(now + wall, Clock(term))
                  IN  /\ off' = [off EXCEPT ![term + 1] = start - now]
                      /\ leased' = [clock |-> start, at |-> now]
            /\ began' = [began EXCEPT ![term + 1] = began[term]]
            /\ granted' = [granted EXCEPT ![term + 1] = granted[term]]
            /\ index' = [index EXCEPT ![term + 1] = index[term]]
            /\ renewed' = [renewed EXCEPT ![term] = now - Hold, ![term + 1] = now]
            /\ UNCHANGED <<now, held, admitted>>

Tick == /\ now < Skew + Horizon
        /\ now' = now + 1
        /\ UNCHANGED <<term, off, began, renewed, leased, granted, index, held, admitted>>

(* Nothing is looked at after the horizon.                                 *)
Done == /\ now = Skew + Horizon
        /\ UNCHANGED vars

Next == \/ Tick \/ Done \/ Renew \/ Follow \/ HandOver
        \/ \E n \in Nodes : Serve(n) \/ \E l \in Leaders : Lease(n, l)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

TypeOK == /\ now \in Skew..(Skew + Horizon)
          /\ term \in Leaders
          /\ granted \in [Leaders -> 0..Limit]
          /\ index \in [Leaders -> Indices]
          /\ held \in [Nodes -> [units : 0..Batch, of : Leaders, index : Indices]]
          /\ admitted \in [Indices -> Nat]

Overshoot == \A i \in Indices : admitted[i] <= Limit

(* Why it holds: of leaders that do not share their counts, the later one  *)
(* starts at an instant that the earlier one does not serve any more.      *)
Covered == \A l \in 1..(term - 1) :
              (now < renewed[l] + Hold /\ began[l] # began[term]) => Clock(l) < began[term]

(* False on purpose.                                                       *)
OvershootTight == \A i \in Indices : admitted[i] <= Limit - 1

===============================================================================
