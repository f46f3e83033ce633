------------------------- MODULE GaleHeartbeatLeasing -------------------------
(***************************************************************************)
(* One pool: a limit on what a fleet has in flight at once. Each holder    *)
(* has a share of it, and admits a request while it has fewer than that in *)
(* flight. A share is granted from what the others leave: their shares, or *)
(* what they still have in flight above them.                              *)
(*                                                                         *)
(* Beats take no time here: the coordinator sees what is in flight now,    *)
(* and a holder has its new share at once. GaleHeartbeatHandoff is about   *)
(* what changes when that is not so.                                       *)
(*                                                                         *)
(* spec/README.md says which code each action stands for.                  *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Nodes,     \* the holders that may join, numbers
          Limit,     \* requests that the fleet may have in flight
          ByDemand,  \* whether idle holders leave their part to those that use theirs up
          SharesOnly \* whether work above a share is forgotten, which breaks the promise

ASSUME /\ IsFiniteSet(Nodes) /\ Nodes # {} /\ Nodes \subseteq Int
       /\ Limit \in Nat \ {0}
       /\ {ByDemand, SharesOnly} \subseteq BOOLEAN

VARIABLES active,  \* the holders that live
          share,   \* what each may have in flight
          inflight \* what each has in flight

vars == <<active, share, inflight>>

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0
             ELSE LET n == CHOOSE n \in S : TRUE IN f[n] + Sum(f, S \ {n})

Reserve(n) == IF SharesOnly THEN share[n] ELSE Max(share[n], inflight[n])

-------------------------------------------------------------------------------
(* What a holder is meant to have. The promise does not depend on it.      *)

EqualSplit == (Limit + Cardinality(active) - 1) \div Cardinality(active)

Hungry == {n \in active : inflight[n] >= share[n]}

(* A holder that does not use its share up is meant to have room for one   *)
(* more request. The rest is split over the hungry.                        *)
Proportional(n) ==
    LET used  == Sum([m \in Nodes |-> inflight[m] + 1], active \ Hungry)
        spare == Max(0, Limit - used)
        k     == Cardinality(Hungry)
        rank  == Cardinality({m \in Hungry : m < n})
    IN  IF n \notin Hungry THEN inflight[n] + 1
        ELSE Max(1, spare \div k + (IF rank < spare % k THEN 1 ELSE 0))

Target(n) == IF ByDemand THEN Proportional(n) ELSE EqualSplit

-------------------------------------------------------------------------------

Init == /\ active \in SUBSET Nodes \ {{}}
        /\ share = [n \in Nodes |-> 0]
        /\ inflight = [n \in Nodes |-> 0]

Reallocate(n) ==
    /\ n \in active
    /\ LET free == Limit - Sum([m \in Nodes |-> Reserve(m)], Nodes \ {n})
       IN  share' = [share EXCEPT ![n] = Max(0, Min(Target(n), free))]
    /\ UNCHANGED <<active, inflight>>

Join(n) == /\ n \notin active
           /\ active' = active \union {n}
           /\ UNCHANGED <<share, inflight>>

Leave(n) == /\ n \in active
            /\ active # {n}
            /\ active' = active \ {n}
            /\ share' = [share EXCEPT ![n] = 0]
            /\ inflight' = [inflight EXCEPT ![n] = 0]

Acquire(n) == /\ inflight[n] < share[n]
              /\ inflight' = [inflight EXCEPT ![n] = @ + 1]
              /\ UNCHANGED <<active, share>>

Release(n) == /\ inflight[n] > 0
              /\ inflight' = [inflight EXCEPT ![n] = @ - 1]
              /\ UNCHANGED <<active, share>>

Next == \E n \in Nodes : \/ Reallocate(n) \/ Join(n) \/ Leave(n)
                         \/ Acquire(n) \/ Release(n)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

TypeOK == /\ active \in SUBSET Nodes \ {{}}
          /\ share \in [Nodes -> 0..Limit]
          /\ inflight \in [Nodes -> 0..Limit]
          /\ \A n \in Nodes \ active : share[n] = 0 /\ inflight[n] = 0

GlobalCap   == Sum(share, Nodes) <= Limit
InflightCap == Sum(inflight, Nodes) <= Limit

(* Why it holds. *)
Reserved == Sum([n \in Nodes |-> Reserve(n)], Nodes) <= Limit

(* False on purpose: the bounds are reached. *)
GlobalCapTight   == Sum(share, Nodes) <= Limit - 1
InflightCapTight == Sum(inflight, Nodes) <= Limit - 1

===============================================================================
