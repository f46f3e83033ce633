------------------------------- MODULE SelfFence -------------------------------
(***************************************************************************)
(* How early a holder has to stop that cannot reach its coordinator. The   *)
(* coordinator gives its share to others TTL after the last beat reached   *)
(* it, by its own clock. The holder admits nothing more when, by its clock,*)
(* TTL - Margin has passed since it sent the last beat that was answered.  *)
(*                                                                         *)
(* Time passes in ticks of the holder's clock. The coordinator's may run   *)
(* ahead of it by Skew in the life of a share, and lag at will: that, and  *)
(* beats that take long, only have it wait longer.                         *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS TTL, Margin,
          Skew,       \* ticks the coordinator's clock may gain
          MaxRequest, \* ticks a request may take
          Abort       \* whether requests are aborted when their share ends

ASSUME /\ {TTL, Margin, Skew, MaxRequest} \subseteq Nat
       /\ Margin < TTL
       /\ Abort \in BOOLEAN

VARIABLES answered,  \* ticks since the holder sent the last beat that was answered
          arrived,   \* ticks since it sent the last beat that reached the coordinator
          sent,      \* ticks since it sent the beat under way, None when there is none
          waited,    \* what the coordinator's clock counted since a beat reached it
          running,   \* ticks since the request that runs was admitted, None when none does
          reclaimed  \* whether the coordinator gave the share to others

vars == <<answered, arrived, sent, waited, running, reclaimed>>

None == -1

Min(a, b) == IF a < b THEN a ELSE b

Later(t) == IF t = None THEN None ELSE Min(t + 1, TTL)

Init == /\ answered = 0 /\ arrived = 0 /\ sent = None /\ waited = 0
        /\ running = None /\ reclaimed = FALSE

Tick == /\ running < MaxRequest
        /\ answered' = Later(answered)
        /\ arrived' = Later(arrived)
        /\ sent' = Later(sent)
        /\ waited' \in waited..Min(arrived' + Skew, TTL)
        /\ running' = IF Abort /\ answered' >= TTL - Margin THEN None
                      ELSE IF running = None THEN None ELSE running + 1
        /\ UNCHANGED reclaimed

(* A beat that is not answered for long is given up, and another is sent.  *)
Send == /\ sent' = 0
        /\ UNCHANGED <<answered, arrived, waited, running, reclaimed>>

Arrive == /\ sent # None
          /\ ~reclaimed
          /\ arrived' = sent
          /\ sent' = None
          /\ waited' = 0
          /\ UNCHANGED <<answered, running, reclaimed>>

(* The answer arrives: the share lasts from when the beat was sent.        *)
Answer == /\ ~reclaimed
          /\ answered' = arrived
          /\ UNCHANGED <<arrived, sent, waited, running, reclaimed>>

Admit == /\ answered < TTL - Margin
         /\ running = None
         /\ running' = 0
         /\ UNCHANGED <<answered, arrived, sent, waited, reclaimed>>

Finish == /\ running # None
          /\ running' = None
          /\ UNCHANGED <<answered, arrived, sent, waited, reclaimed>>

Reclaim == /\ waited >= TTL
           /\ reclaimed' = TRUE
           /\ UNCHANGED <<answered, arrived, sent, waited, running>>

Next == Tick \/ Send \/ Arrive \/ Answer \/ Admit \/ Finish \/ Reclaim

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

TypeOK == /\ {answered, arrived, waited} \subseteq 0..TTL
          /\ sent \in None..TTL
          /\ running \in None..MaxRequest
          /\ reclaimed \in BOOLEAN

(* What others got is not in use any more. It holds when                   *)
(*     Margin >= Skew                  and requests are aborted, or        *)
(*     Margin >= Skew + MaxRequest     and they are not.                   *)
Exclusive == reclaimed => running = None

===============================================================================
