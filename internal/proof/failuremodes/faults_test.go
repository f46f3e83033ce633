package failuremodes_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A fault is something that a policy or a pool depends on, and that breaks.
type fault struct {
	happens, follows string
	// tests inject it: a directory and the name of a test or the words of a spec, or of
	// the fault that torture injects.
	tests []string
	// missing says what of it no test injects, and why; empty when all of it is.
	missing string
}

const torture = "test/torture:"

// groups are the faults of everything but budgets, by what breaks.
var groups = []struct {
	title  string
	faults []fault
}{
	{"The store of a policy", []fault{
		{
			"The store goes away while sidecars hold credits", "They spend the credits until their deadline; then `onStoreUnavailable` decides, and the condition `StoreReachable` says so",
			[]string{"pkg/twotier:TestCreditsInHandOutliveTheStore", "pkg/twotier:TestFailureActionDecidesWhileTheStoreIsUnavailable", "controllers:TestAnUnreachableRedisIsReported", torture + "kill a store"},
			"",
		},
		{
			"The store is away when a sidecar starts", "The sidecar is ready at once, has no credits, and `onStoreUnavailable` decides",
			[]string{"internal/sidecar:TestReadyWhileEverythingElseIsAway", "internal/sidecar:TestARestartDoesNotAskTheStoreOfTheSnapshot"},
			"",
		},
		{
			"The store is slow, or hangs", "No request waits for a store that hangs; a late answer counts only inside of its window",
			[]string{"pkg/twotier:TestRequestsDoNotWaitForAStoreThatHangs", "pkg/twotier:TestLateReplyIsDropped", "pkg/twotier:TestAStoreSlowerThanTheLifetimeDecidesEachRequest", torture + "delay what goes to a store", torture + "pause a store"},
			"",
		},
		{
			"An answer is lost after the store has granted", "The units are not used, and are counted as such; no command is sent twice",
			[]string{"pkg/twotier:TestALostReplyIsNotAnOutage", "pkg/twotier:TestACommandThatWouldCountTwiceIsSentOnce", "pkg/store/redis:TestNoCommandIsSentTwice", "pkg/store/postgres:TestNoCommandIsSentTwice", torture + "cut a store off"},
			"",
		},
		{
			"A Redis that writes each command to its file restarts", "It goes on with its counters",
			[]string{"pkg/store/redis:TestNoLossAdmitsTooMuch", torture + "kill a store"},
			"",
		},
		{
			"A Redis that keeps nothing restarts, or lost its last writes", "The rest of the open window is not served, credits in hand are",
			[]string{"pkg/store/redis:TestNoLossAdmitsTooMuch", torture + "kill a store"},
			"",
		},
		{
			"A replica is promoted that lacks writes", "The same, and the guarantee is `HardExceptSplitBrain`",
			[]string{"pkg/store/redis:TestAPromotionForgetsUnreplicatedGrants", "pkg/store/redis:TestSentinelsNameThePrimary", "pkg/store/redis:TestProbeGradesTheServer", torture + "kill a store and promote its replica", torture + "order a store to fail over"},
			"",
		},
		{
			"Two primaries serve at once", "Each grants a limit of its own: the guarantee says that this is not covered",
			[]string{"pkg/store/redis:TestProbeGradesTheServer"},
			"No test lets two primaries serve: how much is admitted is not promised",
		},
		{
			"Somebody deletes the keys, or all of them", "As after a restart without a file",
			[]string{"pkg/store/redis:TestNoLossAdmitsTooMuch", torture + "delete all keys of a store"},
			"",
		},
		{
			"An old backup is restored", "As after a restart without a file",
			[]string{"pkg/store/redis:TestARestoredBackupForgetsLaterGrants"},
			"",
		},
		{
			"The disk of a store is full", "A Redis with `appendfsync always` and a Postgres crash rather than lose what they granted, one with `everysec` refuses to write; `onStoreUnavailable` decides",
			[]string{torture + "fill the disk of a store"},
			"",
		},
		{
			"The memory of Redis is full", "A lease is refused as a whole; `onStoreUnavailable` decides",
			[]string{"pkg/store/redis:TestAFullMemoryLeavesNoHalfDecision"},
			"",
		},
		{
			"Somebody lets Redis evict keys", "The guarantee becomes `BestEffort`",
			[]string{"pkg/store/redis:TestProbeGradesTheServer"},
			"",
		},
		{
			"Redis forgets its scripts", "They are sent again; nobody sees an error",
			[]string{"pkg/store/redis:TestALostScriptCacheCostsNoError", "pkg/store/redis:TestALostScriptCacheCostsNoErrorOverHTTP"},
			"",
		},
		{
			"A Redis over HTTP answers with an error, with half an answer, or not in time", "As when the store is away; no request is sent twice, and no status shows what was answered",
			[]string{"pkg/store/redis:TestFailuresOverHTTP", "pkg/store/redis:TestALostAnswerIsNotAskedForAgain", "pkg/store/redis:TestNoLossAdmitsTooMuch"},
			"",
		},
		{
			"A Redis over HTTP fails over", "As when a replica is promoted, if it shows its replication ID or another leader; otherwise the guarantee is `BestEffort`",
			[]string{"pkg/store/redis:TestAServiceThatHidesItsInstance", "pkg/store/redis:TestProbeGradesAService"},
			"No test has a service lose grants that shows neither: how much is admitted is not promised",
		},
		{
			"The store's clock is set forward or back, or drifts", "Each window is served once; a clock that went back grants nothing until it has caught up",
			[]string{"pkg/store/redis:TestAClockSetBackGrantsNothing", "pkg/store/postgres:TestAClockSetBackGrantsNothing", torture + "set a store's clock", torture + "kill a store, which comes back with another clock"},
			"",
		},
		{
			"The store's clock is set back while a sidecar is cut off from it", "Units that the sidecar admitted on its local share are not admitted again, by the store or by the sidecar",
			[]string{"pkg/twotier:TestAShareIsAdmittedOnceThoughTheStoresClockIsSetBack", "pkg/twotier/account:TestEveryHistoryOfAClockThatIsSetChargesAWindowOnce"},
			"",
		},
		{
			"The clocks of nodes are wrong, or are set", "Nothing: deadlines count from before the request was sent, by the monotonic clock",
			[]string{"test/fleet:Sidecars whose wall clocks are ten minutes off", torture + "set a node's clock"},
			"",
		},
		{
			"A machine sleeps, or a sidecar stands still", "What it held is dead when it goes on",
			[]string{"pkg/twotier:TestCreditsDieInASuspendedMachine", "pkg/concurrency:TestSuspendedMachineEndsItsRequestsWhenItResumes", torture + "pause a sidecar"},
			"",
		},
		{
			"A Redis Cluster moves slots", "Calls follow; the keys of a counter share a slot",
			[]string{"pkg/store/redis:TestAClusterSharesTheCounters", "pkg/store/redis:TestKeysOfACounterShareAHashTag"},
			"",
		},
		{
			"Credentials are wrong or revoked", "As when the store is away; the cause is named and no secret printed",
			[]string{"pkg/store/redis:TestWrongCredentialsAreUnavailable", "internal/sidecar:TestCredentialsAreNeverShown"},
			"",
		},
		{
			"Postgres crashes, or a standby is promoted", "What it may have forgotten is not granted again",
			[]string{"pkg/store/postgres:TestALossIsNoticed", torture + "kill a store", torture + "kill a store and promote its replica"},
			"",
		},
	}},
	{"Coordination", []fault{
		{
			"The API server does not answer, or etcd has no quorum", "The leader steps down before its lease is over; sidecars go on with what they have",
			[]string{"internal/controlplane/leadership:TestNoInstantIsCoveredByTwoLeaders", "internal/controlplane/coordinator:TestNothingIsGrantedOutsideTheFence", torture + "pause the API server"},
			"No test takes the quorum of several etcd servers away",
		},
		{
			"Returns are repeated, reordered or late", "They are applied once, in their window, or not at all",
			[]string{"pkg/limiter:TestReturn", "pkg/twotier:TestAReturnIsNeverRetried", "pkg/store/redis:TestConformance"},
			"",
		},
		{
			"The leader crashes", "The next one grants nothing that an old grant or share may use",
			[]string{"internal/controlplane/coordinator:TestACrashCostsTheOpenWindowAndNoOther", "internal/controlplane/coordinator:TestACrashIsFollowedByAQuarantine", "test/fleet:when it is killed", torture + "kill a controller"},
			"",
		},
		{
			"The leader crashes while durable counters are in use", "All that was set aside is taken for granted, and open windows go on",
			[]string{"internal/controlplane/coordinator:TestADayGoesOnWithTheNextLeader", "internal/controlplane/coordinator:TestADayGoesOnOnAnAPIServer", "pkg/store/journal:TestManyKillsForfeitLittle", "pkg/store/journal:TestNothingThatMayHappenExceedsALimit", torture + "kill a controller"},
			"",
		},
		{
			"The API server does not answer when units of a durable counter are to be set aside", "Units that are set aside are granted; then `onStoreUnavailable` decides",
			[]string{"internal/controlplane/coordinator:TestALeaderWithoutTheAPIServerSaysSo", torture + "pause the API server"},
			"",
		},
		{
			"Somebody deletes or writes the record of durable counters", "The leader writes it again; a leader that finds none when it begins lets open windows wait; one that finds a later term's grants nothing more",
			[]string{"internal/controlplane/coordinator:TestOpenWindowsWaitWhenARecordIsGone", "internal/controlplane/coordinator:TestARecordThatSomebodyElseWrote"},
			"",
		},
		{
			"The next leader's clock is behind or ahead, or clocks are set while leaders change", "It goes on where the record of the one before ends; no window is served twice",
			[]string{"internal/proof/explore/leaders:TestPromisesHoldInEveryHistory", "internal/proof/explore/leaders:TestEveryRuleIsNeeded", "internal/controlplane/coordinator:TestNoChangeOfLeaderAndClockGrantsTwice", torture + "set a node's clock"},
			"",
		},
		{
			"A leader lapses, and somebody deletes the Lease", "It does not lead again with what it knew",
			[]string{"internal/controlplane/leadership:TestALeaderThatLapsedDoesNotCreateTheLease"},
			"",
		},
		{
			"A leader stands still, another leads, and the first goes on", "It grants nothing outside of its lease; lower terms are refused",
			[]string{"internal/sidecar/fleet:TestLowerTermsAreRefused", "internal/controlplane/coordinator:TestOfTwoLeadersTheEarlierWritesNothing", torture + "pause a controller"},
			"",
		},
		{
			"The leader hands over as planned", "Nothing is lost; sidecars wait at the replica that leads next and their leases wait up to 1 s for it, so no lease is refused to one that has reached it by then",
			[]string{"pkg/twotier:TestAStoreThatMovesIsWaitedFor", "internal/sidecar/fleet:TestLeasesWaitForTheNextLeader", "internal/sidecar/fleet:TestTheNextLeaderIsReachedByTheStreamThatWaits", "internal/controlplane/coordinator:TestAFleetHandedOverHasNoOutage", "internal/controlplane/coordinator:TestAPlannedHandOverLosesNothing", "internal/controlplane/coordinator:TestAPlannedHandOverKeepsTheShares", torture + "stop a controller in good order"},
			"",
		},
		{
			"The leader changes, and many sidecars come back slowly, or are not answered in time when they are back", "A window is granted the shares of those that were back when it began and promised not to begin it by themselves, so all admit no more than the limit",
			[]string{"internal/controlplane/coordinator:TestAFleetThatComesBackKeepsTheLimit", "internal/controlplane/coordinator/absence:TestAShareIsGrantedOfWindowsThatItsHolderPromised", "pkg/twotier:TestAPromiseIsKept", "internal/controlplane/coordinator:TestWhatIsGrantedIsOfThoseWhoAreBack", "pkg/twotier/account:TestNoOrderOfComingBackAdmitsMore"},
			"",
		},
		{
			"The leader answers some sidecars late, and its process dies", "No sidecar begins a window on its share before its leader was silent for a second over a stream that stands; only shares of sidecars that were cut off come on top",
			[]string{"internal/controlplane/coordinator:TestASlowLeaderThatCrashesKeepsTheLimit", "internal/proof/explore/leaders:TestOnlySharesOfHoldersThatAreCutOffExceedALimit", "internal/sidecar/fleet:TestAnAnswerThatComesTooLateShowsTheLeader"},
			"",
		},
		{
			"The leader ends in order, and sidecars hear of that late", "Those that have promised before to begin no window that it serves begin none",
			[]string{"internal/controlplane/coordinator:TestAFleetThatHearsOfAHandOverLateBeginsNothing", "internal/controlplane/coordinator:TestALeaderServesWhileItWaitsForPromises", "internal/controlplane/coordinator:TestALeaderGrantsNothingOnceThePromisesEnd", "internal/proof/explore/leaders:TestOnlySharesOfHoldersThatAreCutOffExceedALimit"},
			"",
		},
		{
			"More sidecars come than the controller can take at once, or it is short of processor time", "They wait for their turn, and those without room try again within 10 s. A sidecar stops reporting while eight of its reports are not answered",
			[]string{"internal/controlplane/coordinator/connlimit:TestTheLatestHandshakeGoesFirst", "internal/controlplane/coordinator:TestLargeFleetsSpreadTheirWaits", "internal/sidecar/fleet:TestPausesGrow", "internal/sidecar/fleet:TestReportsWaitForALeaderThatIsBehind"},
			"",
		},
		{
			"The coordinator of a pool is reachable from some pods only", "The others end their requests before their share is given away",
			[]string{"pkg/concurrency:TestFleetNeverExceedsItsLimit", "test/fleet:keeps the requests in flight at the backend within the limit when a process dies", torture + "cut sidecars off the controller"},
			"",
		},
		{
			"Heartbeats are late, repeated or out of order", "The latest answer alone counts",
			[]string{"pkg/concurrency:TestShareFollowsTheLatestAnswerOnly", "pkg/concurrency/pool:TestFleetNeverHasMoreInFlightThanTheLimit", torture + "delay what goes to the controller"},
			"",
		},
		{
			"The leader crashes while a pool is in use whose shares outlast the election", "Every share goes on, and none grows: what is in flight stays within the limit, and no request is refused for it",
			[]string{"internal/controlplane/coordinator:TestACrashIsFollowedByAQuarantine", "test/e2e:goes on while another controller comes to lead: nothing beyond the limit, and as much as before", "test/e2e:refuses nothing of what is far below the limit, whichever controller leads"},
			"",
		},
		{
			"A pod's name is used again", "A process is its pod's UID and a number of its own: it is another holder",
			[]string{"internal/controlplane/coordinator:TestARestartedProcessIsAnotherHolder", "internal/controlplane/coordinator:TestAnotherStreamOfThePodReplacesTheFirst"},
			"",
		},
		{
			"A pod dies with requests in flight", "Its share is given away when it has expired",
			[]string{"test/fleet:keeps the requests in flight at the backend within the limit when a process dies"},
			"",
		},
		{
			"Clocks of a pod and its coordinator run apart", "The share ends earlier at the pod by a margin",
			[]string{"pkg/concurrency:TestMarginOfTheFence", "internal/proof/explore/pools:TestEveryRuleIsNeeded"},
			"",
		},
		{
			"A value of a pool's key has its limit in flight while pods die, come and go, and leaders change",
			"It never has more than the limit over all pods, and other values are served",
			[]string{
				"internal/proof/explore/pools:TestPromisesHoldInEveryHistory", "pkg/concurrency:TestAShareIsGivenUpWhenEveryKeyHasDrainedToIt",
				"internal/sidecar/pools:TestEveryTenantHasSlotsOfItsOwn",
			},
			"",
		},
		{
			"A pool's limit shrinks under load", "Nobody admits above its share; the others drain",
			[]string{"pkg/concurrency/pool:TestSharesNeverAddUpToMoreThanTheLimit", "test/fleet:follows a backend whose capacity changes"},
			"",
		},
	}},
	{"The control plane", []fault{
		{
			"The webhook is down, hangs or answers nonsense", "Pods start, without a sidecar, and are named in the status",
			[]string{"internal/controlplane/webhook:TestOutages", "controllers:TestPodsWithoutASidecarAreNamed"},
			"",
		},
		{
			"Certificates expire, or somebody damages them", "They are repaired, and no handshake fails in a rotation",
			[]string{"internal/controlplane/certs:TestDamageIsRepaired", "internal/controlplane/certs:TestNoHandshakeFailsAcrossRotations", "internal/controlplane/certs:TestLongRun"},
			"",
		},
		{
			"All controllers are evicted at once", "Limits hold, pods that did not opt in start; controllers need no webhook of their own",
			[]string{"test/e2e:no controller is left: pods that did not opt in are created at once, the others wait for it, and limits hold"},
			"",
		},
		{
			"A sidecar is killed", "It is back soon; credits it held are lost",
			[]string{"test/fleet:a sidecar's crash costs at most the credits it held", "test/e2e:all sidecars are killed at once: nothing beyond the limit, and all serve again", torture + "kill a sidecar"},
			"",
		},
		{
			"A pod is stopped under load", "Requests are finished within the grace period, and credits given back once",
			[]string{"internal/sidecar:TestALife", "internal/sidecar:TestTheGracePeriodEnds", "test/e2e:replaces every pod of an application under load without one request lost"},
			"",
		},
		{
			"The image of the sidecar cannot be pulled", "Pods that opted in wait for it; no other pod is concerned", nil,
			"Kubernetes decides it: `docs/injection.md`",
		},
		{
			"A policy is edited under load", "Old and new never add up",
			[]string{"test/fleet:is acknowledged by all sidecars within two seconds and opens no second budget", "pkg/limiter:TestPolicyEdits", "pkg/limiter:TestAChangeOfAlgorithmFitsIntoItsWindow", "test/fleet:admits not one request too many while it goes from algorithm to algorithm", torture + "edit a policy"},
			"",
		},
		{
			"A policy moves to another store under load", "Every sidecar lets go of the old one before the new one serves",
			[]string{"internal/controlplane/cutover:TestAMoveNeverServesTwoStores", "test/fleet:admits not one request too many while it goes from store to store", torture + "move a policy to another store"},
			"",
		},
		{
			"A policy is deleted and created again", "It finds the old count",
			[]string{"test/fleet:that deletes the policy and creates it again finds the old count"},
			"",
		},
		{
			"Several policies match a request", "All have to admit; what a later one refuses costs the earlier ones nothing",
			[]string{"internal/sidecar/enforce:TestEveryLimitHasToAdmit", "internal/sidecar/enforce:TestARefusalByALaterLimitCostsTheEarlierOnesNothing"},
			"",
		},
		{
			"A policy that nobody can enforce reaches a sidecar", "The last good version stays, and the policy says so",
			[]string{"pkg/policy:TestTheLastGoodVersionStays", "internal/sidecar:TestAPolicyTooNewHoldsNothingElseUp", "controllers:TestAPolicyThatCannotBeEnforcedIsRefused"},
			"",
		},
		{
			"Versions differ between controller and sidecars", "An entry that is not understood is refused alone; stored objects keep their meaning",
			[]string{"pkg/policy:TestGoldenSnapshotsStayAsTheyAre", "pkg/policy:TestAnUnknownPartIsRefusedAlone"},
			"There is one version of the API: nothing is converted yet",
		},
	}},
	{"Input", []fault{
		{
			"A flood of keys", "Memory is bounded; values beyond the bound share counters, and one client does not drain them for all",
			[]string{"pkg/twotier:TestValuesBeyondMaxKeysShareOneCounter", "cmd/sidecar:TestAFloodOfKeysStaysWithinTheContainer", "internal/controlplane/coordinator:TestInventedValuesDoNotShutOutOthers", "pkg/store/memory:TestAFloodOfKeysIsForgotten", "internal/controlplane/coordinator:TestValuesBeyondTheBoundShareACounter"},
			"",
		},
		{
			"Many connections, slow clients, large headers and bodies", "They are shed; others are served",
			[]string{"cmd/sidecar:TestFloodsStayWithinTheContainer", "internal/sidecar:TestSlowHeadersStopNobody", "internal/sidecar:TestLargeBodiesTakeNoMemory", "internal/sidecar/proxy/framing:TestAWriteEndsWhenThePeerReadsNothing"},
			"",
		},
		{
			"Requests that two readers read differently", "400, before the application",
			[]string{"internal/sidecar:TestNothingMalformedReachesTheApp", "internal/sidecar/proxy/framing:TestTheScannerAgreesWithTheGrammar"},
			"",
		},
		{
			"Headers that claim another client", "Only trusted hops are believed",
			[]string{"pkg/policy:TestClientAddress", "pkg/policy:TestRotatingOtherHeadersOpensNoBucket", "internal/controlplane/inject:TestAForgedSidecarIsNoSidecar"},
			"",
		},
		{
			"A pod speaks for another namespace", "It is refused by its token; keys cannot collide",
			[]string{"internal/controlplane/coordinator:TestOneNamespaceCannotDrainAnother", "internal/controlplane/coordinator:TestReportsOfOtherNamespacesAreIgnored", "internal/controlplane/coordinator/podauth:TestATokenOfAnotherPodThanItClaimsIsRefused"},
			"",
		},
		{
			"Somebody uses the credentials of a store directly", "The documented user may do nothing but what Weir does",
			[]string{"pkg/store/redis:TestAUserNeedsNoMoreThanIsDocumented"},
			"",
		},
		{
			"No DNS, no way out, a root that cannot be written", "Everything runs: all of the suite has the loopback interface alone",
			[]string{"hack/sealed:TestAPacketThatLeavesFailsTheCommand", "test/e2e:by the name of a port, where pod security is restricted"},
			"No test has IPv6 alone",
		},
	}},
	{"A budget with a key", []fault{
		{
			"A region is cut off", "It hands on what it has of each value, then refuses; with `Nominal` it goes on with its slice of each value. The others have the rest, and no value more than the limit",
			[]string{"internal/controlplane/coordinator:TestTwoClustersShareTheLimitOfEachUser", "pkg/federation/keyed:TestARegionThatIsCutOff", "internal/controlplane/region:TestASliceOfEachValueGoesOnWithoutTheHub", "test/fleet:gives each user the limit once, while a region is cut off and when the hub is killed"},
			"",
		},
		{
			"The hub's controller crashes", "At most a block of each value is forfeited in the open window, and nothing is granted twice",
			[]string{"pkg/federation/coordinator/kubernetes:TestCrashesWithKeys", "pkg/federation/coordinator/kubernetes:TestTheNextLeaderTakesWhatWasSetAsideForGranted", "test/fleet:gives each user the limit once, while a region is cut off and when the hub is killed"},
			"",
		},
		{
			"Messages are lost or late", "The units in them are not used; no message is sent twice",
			[]string{"pkg/federation/keyed:TestManyKeysOverThreeRegions", "pkg/federation/keyed:TestACoordinatorThatHasNoTime"},
			"",
		},
		{
			"More values than `maxKeys`", "Those that come later share limits until the window ends, and the condition `KeysFull` says so",
			[]string{"internal/controlplane/coordinator:TestUsersThatAreTooManyShareLimits", "pkg/federation/keys:TestValuesThatAreTooManyShareCounters", "controllers:TestConditionsOfABudgetWithAKey"},
			"",
		},
		{
			"The object of one cluster has a key, and that of another none", "The hub refuses the member, and the condition `Connected` says why",
			[]string{"internal/controlplane/hub:TestOnlyOneHasAKey", "internal/controlplane/region:TestAHubThatKeepsTheBudgetWithoutAKey"},
			"",
		},
		{
			"A Redis or Postgres that keeps it loses its memory", "As for the store of a policy",
			[]string{"pkg/federation/coordinator/counters:TestAWindowThatIsOlderThanTheStoresMemory", "pkg/federation/keyed:TestEveryKeyStaysWithinItsLimitWhateverFails"},
			"The windows of all clusters are not measured there",
		},
		{
			"The hub, or the Redis or Postgres that keeps it, is away for a time", "Regions hand on what they have of each value, then refuse. When it is back, the rest of each value's limit is granted",
			[]string{"pkg/federation/keyed:TestEveryKeyStaysWithinItsLimitWhateverFails", "pkg/federation/keyed:TestARegionThatIsCutOff"},
			"",
		},
		{
			"More values are in demand in a region than it remembers", "What it had in hand of others is forfeited until the window ends; no value has more than its limit",
			[]string{"pkg/federation/keyed:TestEveryKeyStaysWithinItsLimitWhateverFails"},
			"",
		},
		{
			"An override is edited while a window is open", "The window keeps the smaller limit of the value. After a crash of the hub it may have the larger one, and never more than the largest that held",
			[]string{"pkg/federation/keys:TestAWindowThatIsOpenKeepsTheSmallerLimitOfAValue", "pkg/federation/keys:TestNoValueHasMoreThanTheLargestOfItsLimits", "internal/proof/explore/keys:TestAnOverrideIsEditedInEveryHistory", "internal/controlplane/audit/budgetaudit:TestTheLargestLimitOfAWindowCounts"},
			"",
		},
	}},
	{"Everything at once", []fault{
		{
			"Faults of all kinds, at random, over each other", "No window exceeds its limit, the status says nothing that is not so, and everything serves again in a minute",
			[]string{torture + "everything serves", torture + "all served again after", torture + "cut a cluster off the hub of its budget"},
			"",
		},
	}},
}

// TestEveryFaultIsInjected finds faults that name no test and do not say why, and names
// of tests that are not there.
func TestEveryFaultIsInjected(t *testing.T) {
	for _, g := range groups {
		for _, f := range g.faults {
			if len(f.tests) == 0 && f.missing == "" {
				t.Errorf("%s: no test injects it, and nothing says why", f.happens)
			}
			for _, name := range f.tests {
				if _, err := locate(name); err != nil {
					t.Errorf("%s: %v", f.happens, err)
				}
			}
		}
	}
}

// locate returns the file that holds a test, from the root of the checkout.
func locate(name string) (string, error) {
	dir, test, _ := strings.Cut(name, ":")
	wanted := "\"" + test
	if strings.HasPrefix(test, "Test") {
		wanted = "\nfunc " + test + "("
	}
	files, err := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(text), wanted) {
			return path.Join(dir, filepath.Base(file)), nil
		}
	}
	return "", fmt.Errorf("%s holds no test %q", dir, test)
}

// renderFaults returns the part of the page that is about policies and pools.
func renderFaults() string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| what happens | what follows | tests |\n|---|---|---|\n", g.title)
		for _, f := range g.faults {
			var cells []string
			for _, name := range f.tests {
				cells = append(cells, link(name))
			}
			if f.missing != "" {
				cells = append(cells, "*not shown here: "+f.missing+"*")
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.happens, f.follows, strings.Join(cells, "; "))
		}
	}
	return b.String()
}

// link renders a link from docs to the file of a test.
func link(name string) string {
	file, err := locate(name)
	if err != nil {
		return err.Error() // another test fails
	}
	_, test, _ := strings.Cut(name, ":")
	if strings.HasPrefix(name, torture) {
		return fmt.Sprintf("[torture](../%s): %s", file, test)
	}
	return fmt.Sprintf("[%s](../%s)", test, file)
}
