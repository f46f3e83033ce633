------------------------- MODULE GaleHeartbeatHandoff -------------------------
(***************************************************************************)
(* GaleHeartbeatLeasing with beats that take time. A grant is under way    *)
(* until its holder applies it, in any order with others; meanwhile the    *)
(* holder works by an older one. What the coordinator knows of a holder is *)
(* what it reported last.                                                  *)
(*                                                                         *)
(* So the coordinator keeps in reserve what it knows for itself: the       *)
(* largest share that it granted since the one that the holder confirmed,  *)
(* and the work that was running then.                                     *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Nodes, \* the holders that may join
          Limit, \* requests that the fleet may have in flight
          K,     \* grants to a holder from when it joins until it leaves
          Rule,  \* what is kept in reserve
          Torn   \* whether a report says what is applied and what is in flight
                 \* at two instants

ASSUME /\ IsFiniteSet(Nodes) /\ Nodes # {}
       /\ {Limit, K} \subseteq Nat \ {0}
       /\ Rule \in {"unacknowledged", "occupancy", "committed", "grants"}
       /\ Torn \in BOOLEAN

VARIABLES active,     \* the holders that live
          hist,       \* hist[n]: all shares granted to n since it joined
          appliedIdx, \* which of them n works by, 0 before any
          inflight,   \* what n has in flight
          ackIdx,     \* which of them n reported to work by
          repInflight \* what n reported to have in flight

vars == <<active, hist, appliedIdx, inflight, ackIdx, repInflight>>

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0
             ELSE LET n == CHOOSE n \in S : TRUE IN f[n] + Sum(f, S \ {n})

Largest(S) == IF S = {} THEN 0 ELSE CHOOSE x \in S : \A y \in S : y <= x

Share(n, i) == IF i = 0 THEN 0 ELSE hist[n][i]

Committed(n) == Share(n, Len(hist[n]))

Unacknowledged(n) == Largest({Share(n, i) : i \in ackIdx[n]..Len(hist[n])})

(* The first is the rule. The others are refuted.                          *)
Reserve(n) ==
    CASE Rule = "unacknowledged" -> Max(Unacknowledged(n), repInflight[n])
      [] Rule = "occupancy"      -> Max(Committed(n), repInflight[n])
      [] Rule = "committed"      -> Max(Committed(n), Max(Share(n, ackIdx[n]), repInflight[n]))
      [] Rule = "grants"         -> Unacknowledged(n)

Target == (Limit + Cardinality(active) - 1) \div Cardinality(active)

-------------------------------------------------------------------------------

Zero == [n \in Nodes |-> 0]

Init == /\ active \in SUBSET Nodes \ {{}}
        /\ hist = [n \in Nodes |-> <<>>]
        /\ appliedIdx = Zero /\ inflight = Zero
        /\ ackIdx = Zero /\ repInflight = Zero

Reallocate(n) ==
    /\ n \in active
    /\ Len(hist[n]) < K
    /\ LET free == Limit - Sum([m \in Nodes |-> Reserve(m)], active \ {n})
       IN  hist' = [hist EXCEPT ![n] = Append(@, Max(0, Min(Target, free)))]
    /\ UNCHANGED <<active, appliedIdx, inflight, ackIdx, repInflight>>

(* A grant arrives. One that a later one overtook is not applied.          *)
Deliver(n) ==
    /\ \E i \in (appliedIdx[n] + 1)..Len(hist[n]) : appliedIdx' = [appliedIdx EXCEPT ![n] = i]
    /\ UNCHANGED <<active, hist, inflight, ackIdx, repInflight>>

(* A beat arrives: which share its holder works by and what it has in      *)
(* flight, both of one instant.                                            *)
Report(n) ==
    /\ n \in active
    /\ ackIdx' = [ackIdx EXCEPT ![n] = appliedIdx[n]]
    /\ repInflight' = [repInflight EXCEPT ![n] = inflight[n]]
    /\ UNCHANGED <<active, hist, appliedIdx, inflight>>

(* The same in two parts.                                                  *)
ReportApplied(n) ==
    /\ n \in active
    /\ ackIdx' = [ackIdx EXCEPT ![n] = appliedIdx[n]]
    /\ UNCHANGED <<active, hist, appliedIdx, inflight, repInflight>>

ReportInflight(n) ==
    /\ n \in active
    /\ repInflight' = [repInflight EXCEPT ![n] = inflight[n]]
    /\ UNCHANGED <<active, hist, appliedIdx, inflight, ackIdx>>

Beat(n) == IF Torn THEN ReportApplied(n) \/ ReportInflight(n) ELSE Report(n)

Acquire(n) == /\ inflight[n] < Share(n, appliedIdx[n])
              /\ inflight' = [inflight EXCEPT ![n] = @ + 1]
              /\ UNCHANGED <<active, hist, appliedIdx, ackIdx, repInflight>>

Release(n) == /\ inflight[n] > 0
              /\ inflight' = [inflight EXCEPT ![n] = @ - 1]
              /\ UNCHANGED <<active, hist, appliedIdx, ackIdx, repInflight>>

Join(n) == /\ n \notin active
           /\ active' = active \union {n}
           /\ UNCHANGED <<hist, appliedIdx, inflight, ackIdx, repInflight>>

Leave(n) == /\ n \in active
            /\ active # {n}
            /\ active' = active \ {n}
            /\ hist' = [hist EXCEPT ![n] = <<>>]
            /\ appliedIdx' = [appliedIdx EXCEPT ![n] = 0]
            /\ inflight' = [inflight EXCEPT ![n] = 0]
            /\ ackIdx' = [ackIdx EXCEPT ![n] = 0]
            /\ repInflight' = [repInflight EXCEPT ![n] = 0]

Next == \E n \in Nodes : \/ Reallocate(n) \/ Deliver(n) \/ Beat(n)
                         \/ Acquire(n) \/ Release(n) \/ Join(n) \/ Leave(n)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

TypeOK == /\ active \in SUBSET Nodes \ {{}}
          /\ \A n \in Nodes : /\ Len(hist[n]) <= K
                              /\ \A i \in 1..Len(hist[n]) : hist[n][i] \in 0..Limit
                              /\ ackIdx[n] <= appliedIdx[n]
                              /\ appliedIdx[n] <= Len(hist[n])
                              /\ inflight[n] \in 0..Limit
                              /\ repInflight[n] \in 0..Limit

GlobalCap   == Sum([n \in Nodes |-> Committed(n)], Nodes) <= Limit
InflightCap == Sum(inflight, Nodes) <= Limit

(* Why it holds: a holder has no more in flight than is kept for it, and   *)
(* what is kept for all fits below the limit.                              *)
Covered == /\ \A n \in Nodes : inflight[n] <= Reserve(n)
           /\ Sum([n \in Nodes |-> Reserve(n)], active) <= Limit

(* False on purpose: the bounds are reached. *)
GlobalCapTight   == Sum([n \in Nodes |-> Committed(n)], Nodes) <= Limit - 1
InflightCapTight == Sum(inflight, Nodes) <= Limit - 1

===============================================================================
