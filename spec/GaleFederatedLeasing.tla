------------------------- MODULE GaleFederatedLeasing -------------------------
(***************************************************************************)
(* A budget that several regions share, given without its messages. The     *)
(* coordinator grants batches of the open window. A region's escrow hands  *)
(* them on, and what it has left dies with the window. The machine is that *)
(* of GaleWindowCoupledLeasing with regions for holders: so the bound does *)
(* not depend on how many regions there are.                               *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS Regions, Limit, Batch

ASSUME Limit \in Nat /\ Batch \in Nat \ {0}

VARIABLES globalBudget, \* units of the open window that are not granted
          escrow,       \* of each region: units granted and not handed on
          admitted      \* in the open window

vars == <<globalBudget, escrow, admitted>>

TypeOK == /\ globalBudget \in 0..Limit
          /\ escrow \in [Regions -> 0..(Batch - 1)]
          /\ admitted \in Nat

Init == /\ globalBudget = Limit
        /\ escrow = [r \in Regions |-> 0]
        /\ admitted = 0

Serve(r) == /\ escrow[r] > 0
            /\ escrow' = [escrow EXCEPT ![r] = @ - 1]
            /\ admitted' = admitted + 1
            /\ UNCHANGED globalBudget

(* An empty escrow is filled with a batch, and one unit of it is handed on.*)
Lease(r) == /\ escrow[r] = 0
            /\ globalBudget >= Batch
            /\ globalBudget' = globalBudget - Batch
            /\ escrow' = [escrow EXCEPT ![r] = Batch - 1]
            /\ admitted' = admitted + 1

Roll == /\ globalBudget' = Limit
        /\ escrow' = [r \in Regions |-> 0]
        /\ admitted' = 0

Next == Roll \/ \E r \in Regions : Serve(r) \/ Lease(r)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

RECURSIVE Total(_)
Total(S) == IF S = {} THEN 0
            ELSE LET r == CHOOSE r \in S : TRUE IN escrow[r] + Total(S \ {r})

(* Every unit of the window is in one place. Overshoot follows from it.    *)
Conserved == globalBudget + Total(Regions) + admitted = Limit

Overshoot == admitted <= Limit

(* False on purpose.                                                       *)
OvershootTight == admitted <= Limit - 1

===============================================================================
