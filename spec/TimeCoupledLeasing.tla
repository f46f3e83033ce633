-------------------------- MODULE TimeCoupledLeasing --------------------------
(***************************************************************************)
(* One key and a token bucket. There are no windows a credit could die     *)
(* with, so it lives a fixed time, and may be spent at any instant of it.  *)
(* The promise is about the instants of spending: in every interval of     *)
(* length x at most Burst + rate * x units are let through.                *)
(*                                                                         *)
(* Time passes in ticks. A level is counted in parts, such that a unit and *)
(* what drains in a tick are both whole numbers of them: a unit is Cost    *)
(* parts, a tick drains Drain parts, and the rate is Drain / Cost.         *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Nodes,
          Burst,    \* units
          Cost,     \* parts a unit
          Drain,    \* parts a tick
          Lifetime, \* of a credit, in ticks
          Batch,    \* units of the largest lease; a smaller one may be granted
          Floored   \* whether the bucket keeps what its credits' lifetime lets out

ASSUME /\ IsFiniteSet(Nodes) /\ Nodes # {}
       /\ {Burst, Cost, Drain, Lifetime, Batch} \subseteq Nat \ {0}
       /\ Floored \in BOOLEAN

Brim  == Burst * Cost
Floor == IF Floored THEN Lifetime * Drain ELSE 0

ASSUME Floor + Cost <= Brim \* or nothing could ever be granted

VARIABLES level, \* of the store's bucket, which a grant fills
          held,  \* held[n][k]: units in n's hand that may be spent for k more ticks
          meter  \* level of a bucket that each unit fills when it is spent

vars == <<level, held, meter>>

Lives == 0..Lifetime

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0
             ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})

InHand(n) == Sum(held[n], Lives)

Outstanding == Sum([n \in Nodes |-> InHand(n)], Nodes)

Init == /\ level = Floor
        /\ held = [n \in Nodes |-> [k \in Lives |-> 0]]
        /\ meter = 0

(* The store grants what the bucket has room for. A holder that still has  *)
(* something in hand may ask ahead of need; the two grants die apart.      *)
Lease(n) == LET granted == Min(Batch, (Brim - level) \div Cost)
            IN  /\ granted > 0
                /\ InHand(n) < Batch
                /\ level' = level + granted * Cost
                /\ held' = [held EXCEPT ![n][Lifetime] = @ + granted]
                /\ UNCHANGED meter

(* A request is let through without asking anybody.                        *)
Serve(n, k) == /\ held[n][k] > 0
               /\ held' = [held EXCEPT ![n][k] = @ - 1]
               /\ meter' = meter + Cost
               /\ UNCHANGED level

(* A tick passes: both buckets drain, and what has no life left is void.   *)
Tick == /\ level' = Max(Floor, level - Drain)
        /\ meter' = Max(0, meter - Drain)
        /\ held' = [n \in Nodes |-> [k \in Lives |-> IF k = Lifetime THEN 0 ELSE held[n][k + 1]]]

Next == Tick \/ \E n \in Nodes : Lease(n) \/ \E k \in Lives : Serve(n, k)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

TypeOK == /\ level \in Floor..Brim
          /\ held \in [Nodes -> [Lives -> 0..(2 * Batch)]]
          /\ meter \in Nat

(* Over all intervals that end now, what was spent beyond the rate is at   *)
(* most meter (Cruz 1991); so this is the promise for every interval.      *)
Overshoot == meter <= Brim

(* Why it holds: the store's bucket is above the meter by at least what is *)
(* still in hand.                                                          *)
Covered == meter + Outstanding * Cost <= level

(* False on purpose.                                                       *)
OvershootTight == meter <= Brim - 1

===============================================================================
