------------------------------ MODULE GaleJournal -----------------------------
(***************************************************************************)
(* The controller's own store and one counter that survives its leader. A  *)
(* leader grants from its memory, but only units that it set aside before  *)
(* in a record that outlives it. A record may have been written although   *)
(* its writer does not know it yet. A successor takes all that the record  *)
(* says for granted, so a crash forfeits what was set aside and was not    *)
(* granted: a block at most.                                               *)
(*                                                                         *)
(* What a leader that was followed still grants belongs to windows that    *)
(* its successor does not serve, or was set aside for it before.           *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS Limit, Block,
          Crashes, \* leaders that do not hand over, at most, in a window
          Forgets, \* TRUE takes a rule away: what was set aside is not charged
          Hasty    \* TRUE: a unit is granted before the record is known to be written

ASSUME /\ Limit \in Nat /\ Block \in Nat \ {0} /\ Crashes \in Nat
       /\ {Forgets, Hasty} \subseteq BOOLEAN

VARIABLES crashes,
          record,    \* units of the open window that are set aside, as it is kept
          sent,      \* what the leader wrote and does not know to be kept; -1 for nothing
          aside,     \* what the leader knows to be set aside
          used,      \* what it counts as granted
          granted,   \* by all leaders, in the open window
          forfeited  \* set aside, charged, and not granted

vars == <<crashes, record, sent, aside, used, granted, forfeited>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b

Init == /\ crashes = 0 /\ record = 0 /\ sent = -1
        /\ aside = 0 /\ used = 0 /\ granted = 0 /\ forfeited = 0

Known == IF Hasty THEN Max(aside, sent) ELSE aside

Grant == /\ used < Known
         /\ used' = used + 1
         /\ granted' = granted + 1
         /\ UNCHANGED <<crashes, record, sent, aside, forfeited>>

(* A block beyond what is granted is set aside.                            *)
Write == /\ sent = -1
         /\ Min(used + Block, Limit) > aside
         /\ sent' = Min(used + Block, Limit)
         /\ UNCHANGED <<crashes, record, aside, used, granted, forfeited>>

Arrive == /\ sent # -1 /\ record # sent
          /\ record' = sent
          /\ UNCHANGED <<crashes, sent, aside, used, granted, forfeited>>

Answer == /\ sent # -1 /\ record = sent
          /\ aside' = sent
          /\ sent' = -1
          /\ UNCHANGED <<crashes, record, used, granted, forfeited>>

(* What is still under way is fenced off by the successor's first write.   *)
Crash == /\ crashes < Crashes
         /\ crashes' = crashes + 1
         /\ LET known == IF Forgets THEN 0 ELSE record
            IN  /\ used' = known
                /\ aside' = known
                /\ forfeited' = forfeited + Max(0, known - used)
         /\ sent' = -1
         /\ UNCHANGED <<record, granted>>

Roll == /\ crashes' = 0 /\ record' = 0 /\ sent' = -1
        /\ aside' = 0 /\ used' = 0 /\ granted' = 0 /\ forfeited' = 0

Next == Grant \/ Write \/ Arrive \/ Answer \/ Crash \/ Roll

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------

TypeOK == /\ crashes \in 0..Crashes
          /\ {record, aside, used, granted, forfeited} \subseteq 0..Limit
          /\ sent \in -1..Limit

Overshoot == granted <= Limit

(* Whatever was granted is set aside in the record.                        *)
Covered == granted <= record

Forfeit == forfeited <= crashes * Block

(* What is counted was granted or forfeited.                               *)
Conserved == used = granted + forfeited

(* False on purpose.                                                       *)
OvershootTight == granted <= Limit - 1
ForfeitTight == forfeited <= crashes * Block - 1 \/ crashes = 0

===============================================================================
