----------------------- MODULE GaleWindowCoupledLeasing -----------------------
(***************************************************************************)
(* DistributedLeasing with one change: credits die with the window that    *)
(* granted them. Then a window lets through what it granted and no more,   *)
(* whatever the number of holders and the size of batches.                 *)
(***************************************************************************)
EXTENDS DistributedLeasing

CONSTANT Returns \* whether holders may give back what they have in hand

ASSUME Returns \in BOOLEAN

(* The next window opens, and what is in hand is void.                     *)
RollAndExpire == /\ left' = Limit
                 /\ admitted' = 0
                 /\ credits' = [n \in Nodes |-> 0]

(* What is in hand goes back into the window it came from.                 *)
Return(n) == /\ Returns
             /\ credits[n] > 0
             /\ left' = left + credits[n]
             /\ credits' = [credits EXCEPT ![n] = 0]
             /\ UNCHANGED admitted

CoupledNext == RollAndExpire \/ \E n \in Nodes : Serve(n) \/ Lease(n) \/ Return(n)

CoupledSpec == Init /\ [][CoupledNext]_vars

-------------------------------------------------------------------------------

RECURSIVE Total(_)
Total(S) == IF S = {} THEN 0
            ELSE LET n == CHOOSE n \in S : TRUE IN credits[n] + Total(S \ {n})

(* Every unit of the window is in one place. Overshoot follows from it.    *)
Conserved == left + Total(Nodes) + admitted = Limit

CoupledOvershoot == admitted <= Limit

(* False on purpose.                                                       *)
CoupledOvershootTight == admitted <= Limit - 1

===============================================================================
