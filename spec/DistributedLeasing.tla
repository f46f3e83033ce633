-------------------------- MODULE DistributedLeasing --------------------------
(***************************************************************************)
(* One key, one fixed window, holders that lease in batches. What a holder *)
(* has not spent when the window rolls it keeps: carry-over. Requests cost *)
(* one unit, and a lease is granted whole or not at all.                   *)
(*                                                                         *)
(* spec/README.md says which code each action stands for.                  *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Nodes, \* the holders
          Limit, \* units that one window may grant
          Batch  \* units of one lease

ASSUME /\ IsFiniteSet(Nodes) /\ Nodes # {}
       /\ Limit \in Nat \ {0}
       /\ Batch \in 1..Limit

VARIABLES left,     \* what the store can still grant of the open window
          credits,  \* what each holder has in hand
          admitted  \* what the open window has let through

vars == <<left, credits, admitted>>

(* Each holder may bring at most a batch less the unit it leased for.      *)
MaxAdmitted == Limit + Cardinality(Nodes) * (Batch - 1)

Init == /\ left = Limit
        /\ credits = [n \in Nodes |-> 0]
        /\ admitted = 0

(* A request is let through without asking anybody.                        *)
Serve(n) == /\ credits[n] > 0
            /\ credits' = [credits EXCEPT ![n] = @ - 1]
            /\ admitted' = admitted + 1
            /\ UNCHANGED left

(* A request finds the hand empty: its holder leases a batch and spends    *)
(* the first unit of it at once.                                           *)
Lease(n) == /\ credits[n] = 0
            /\ left >= Batch
            /\ left' = left - Batch
            /\ credits' = [credits EXCEPT ![n] = Batch - 1]
            /\ admitted' = admitted + 1

(* The next window opens.                                                  *)
Roll == /\ left' = Limit
        /\ admitted' = 0
        /\ UNCHANGED credits

Next == Roll \/ \E n \in Nodes : Serve(n) \/ Lease(n)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

TypeOK == /\ left \in 0..Limit
          /\ credits \in [Nodes -> 0..(Batch - 1)]
          /\ admitted \in 0..MaxAdmitted

Overshoot == admitted <= MaxAdmitted

(* False on purpose: the bound is reached, so nothing lower can be claimed. *)
OvershootTight == admitted <= MaxAdmitted - 1

===============================================================================
