package v1alpha1_test

import (
	"strings"
	"testing"
)

// poolWith returns a valid spec of a pool with more fields.
func poolWith(fields string) string { return `{` + selectAll + `, limit: {max: 100}, ` + fields + `}` }

func poolLimit(fields string) string { return `{` + selectAll + `, limit: {` + fields + `}}` }

func poolKey(fields string) string { return poolWith(`key: {` + fields + `}`) }

func poolAlgorithm(fields string) string { return poolWith(`algorithm: {` + fields + `}`) }

func heartbeat(fields string) string { return poolWith(`heartbeat: {` + fields + `}`) }

func partitions(list string) string { return poolWith(`partitions: ` + list) }

func coordinator(fields string) string { return poolWith(`coordinator: {` + fields + `}`) }

const measuresNothing = "set type to Gradient2"

var invalidPools = map[string]invalid{
	"no podSelector":                 {`{limit: {max: 1}}`, "spec.podSelector", "Required value"},
	"a podSelector that is a string": {`{podSelector: "app=checkout", limit: {max: 1}}`, "spec.podSelector", "must be of type object"},
	"a mode that does not exist":     {poolWith(`mode: DryRun`), "spec.mode", `supported values: "Enforce", "Shadow"`},

	"a key without parts":            {poolKey(`limit: 1`), "spec.key.parts", "Required value"},
	"a key without a limit":          {poolKey(`parts: [{type: Path}]`), "spec.key.limit", "Required value"},
	"a limit per key of zero":        {poolKey(`parts: [{type: Path}], limit: 0`), "spec.key.limit", "should be greater than or equal to 1"},
	"a limit per key of too many":    {poolKey(`parts: [{type: Path}], limit: 1000001`), "spec.key.limit", "should be less than or equal to 1000000"},
	"five parts of a key":            {poolKey(`limit: 1, parts: [{type: Path}, {type: Host}, {type: Method}, {type: QueryParam, queryParam: {name: a}}, {type: QueryParam, queryParam: {name: b}}]`), "spec.key.parts", "must have at most 4 items"},
	"a part that comes twice":        {poolKey(`limit: 1, parts: [{type: Header, header: {name: x-tenant}}, {type: Header, header: {name: X-Tenant}}]`), "spec.key.parts", "remove one"},
	"a key of the client's address":  {poolKey(`limit: 1, parts: [{type: ClientIP}]`), "spec.key.parts", "use type Header with a header that the proxy sets"},
	"a key of the peer":              {poolKey(`limit: 1, parts: [{type: PeerIdentity}]`), "spec.key.parts", "use type Header with a header that the proxy sets"},
	"a key of descriptors":           {poolKey(`limit: 1, parts: [{type: Descriptor, descriptor: {key: a}}]`), "spec.key.parts", "use another type, or a RateLimitPolicy"},
	"a key of a verified claim":      {poolKey(`limit: 1, parts: [{type: JWTClaim, jwtClaim: {claim: sub, verification: Verified, provider: a}}]`), "spec.key.parts", "set verification to Unverified"},
	"a part without its header":      {poolKey(`limit: 1, parts: [{type: Header}]`), "spec.key.parts[0].header", "set header.name"},
	"an onMissing that is not known": {poolKey(`limit: 1, parts: [{type: Path}], onMissing: Ignore`), "spec.key.onMissing", `supported values: "Shared", "Skip", "Reject"`},

	"no limit":                       {`{` + selectAll + `}`, "spec.limit", "Required value"},
	"a limit without max":            {poolLimit(`min: 1`), "spec.limit.max", "Required value"},
	"a max of zero":                  {poolLimit(`max: 0`), "spec.limit.max", "should be greater than or equal to 1"},
	"a max of more than a million":   {poolLimit(`max: 1000001`), "spec.limit.max", "should be less than or equal to 1000000"},
	"a max with a fraction":          {poolLimit(`max: 1.5`), "spec.limit.max", "must be of type int64"},
	"a min of zero":                  {poolLimit(`min: 0, max: 1`), "spec.limit.min", "should be greater than or equal to 1"},
	"min above max":                  {poolLimit(`min: 11, max: 10`), "spec.limit.min", "lower min, or raise max"},
	"an initial of zero":             {poolLimit(`initial: 0, max: 1`), "spec.limit.initial", "should be greater than or equal to 1"},
	"initial above max":              {poolLimit(`initial: 11, max: 10`), "spec.limit.initial", "lower initial, or raise max"},
	"initial below min":              {poolLimit(`min: 5, initial: 4, max: 10`), "spec.limit.initial", "raise initial, or lower min"},
	"initial between max and min":    {poolLimit(`min: 11, initial: 10, max: 10`), "spec.limit.min", "lower min, or raise max"},
	"Fixed with a min":               {`{` + selectAll + `, limit: {min: 1, max: 10}, algorithm: {type: Fixed}}`, "spec.limit.min", "remove min, or set algorithm.type to Gradient2"},
	"Fixed with an initial":          {`{` + selectAll + `, limit: {initial: 1, max: 10}, algorithm: {type: Fixed}}`, "spec.limit.initial", "remove initial, or set algorithm.type to Gradient2"},
	"an algorithm that is not known": {poolAlgorithm(`type: Vegas`), "spec.algorithm.type", `supported values: "Gradient2", "AIMD", "Fixed"`},

	"a baseline of no samples":        {poolAlgorithm(`baseline: {type: Rolling, samples: 0}`), "spec.algorithm.baseline.samples", "should be greater than or equal to 1"},
	"a baseline of 10001 samples":     {poolAlgorithm(`baseline: {type: Rolling, samples: 10001}`), "spec.algorithm.baseline.samples", "should be less than or equal to 10000"},
	"no smoothing":                    {poolAlgorithm(`smoothingPercent: 0`), "spec.algorithm.smoothingPercent", "should be greater than or equal to 1"},
	"smoothing of 101 percent":        {poolAlgorithm(`smoothingPercent: 101`), "spec.algorithm.smoothingPercent", "should be less than or equal to 100"},
	"a tolerance of 99 percent":       {poolAlgorithm(`tolerancePercent: 99`), "spec.algorithm.tolerancePercent", "should be greater than or equal to 100"},
	"a tolerance of 1001 percent":     {poolAlgorithm(`tolerancePercent: 1001`), "spec.algorithm.tolerancePercent", "should be less than or equal to 1000"},
	"a backoff to 49 percent":         {poolAlgorithm(`type: AIMD, backoffPercent: 49`), "spec.algorithm.backoffPercent", "should be greater than or equal to 50"},
	"a backoff to 100 percent":        {poolAlgorithm(`type: AIMD, backoffPercent: 100`), "spec.algorithm.backoffPercent", "should be less than or equal to 99"},
	"Fixed with a baseline":           {poolAlgorithm(`type: Fixed, baseline: {}`), "spec.algorithm.baseline", measuresNothing},
	"Fixed with a tolerance":          {poolAlgorithm(`type: Fixed, tolerancePercent: 100`), "spec.algorithm.tolerancePercent", measuresNothing},
	"Fixed with smoothing":            {poolAlgorithm(`type: Fixed, smoothingPercent: 1`), "spec.algorithm.smoothingPercent", "remove it, or set type to Gradient2"},
	"Fixed with a backoff":            {poolAlgorithm(`type: Fixed, backoffPercent: 90`), "spec.algorithm.backoffPercent", "remove it, or set type to AIMD"},
	"Fixed with requests to ignore":   {poolAlgorithm(`type: Fixed, ignore: [{methods: [GET]}]`), "spec.algorithm.ignore", measuresNothing},
	"AIMD with smoothing":             {poolAlgorithm(`type: AIMD, smoothingPercent: 1`), "spec.algorithm.smoothingPercent", "remove it, or set type to Gradient2"},
	"Gradient2 with a backoff":        {poolAlgorithm(`backoffPercent: 90`), "spec.algorithm.backoffPercent", "remove it, or set type to AIMD"},
	"a baseline that is not known":    {poolAlgorithm(`baseline: {type: Guessed}`), "spec.algorithm.baseline.type", `supported values: "Measured", "Rolling"`},
	"Measured with samples":           {poolAlgorithm(`baseline: {samples: 1}`), "spec.algorithm.baseline.samples", "remove it, or set type to Rolling"},
	"Rolling with an interval":        {poolAlgorithm(`baseline: {type: Rolling, interval: 1s}`), "spec.algorithm.baseline.interval", "remove it, or set type to Measured"},
	"Rolling with a probe limit":      {poolAlgorithm(`baseline: {type: Rolling, probeLimit: 1}`), "spec.algorithm.baseline.probeLimit", "remove it, or set type to Measured"},
	"Rolling with probe samples":      {poolAlgorithm(`baseline: {type: Rolling, probeSamples: 1}`), "spec.algorithm.baseline.probeSamples", "remove it, or set type to Measured"},
	"measurements without a pause":    {poolAlgorithm(`baseline: {interval: 99ms}`), "spec.algorithm.baseline.interval", notADuration},
	"a probe of nothing":              {poolAlgorithm(`baseline: {probeLimit: 0}`), "spec.algorithm.baseline.probeLimit", "should be greater than or equal to 1"},
	"a probe of over a million":       {poolAlgorithm(`baseline: {probeLimit: 1000001}`), "spec.algorithm.baseline.probeLimit", "should be less than or equal to 1000000"},
	"a probe without samples":         {poolAlgorithm(`baseline: {probeSamples: 0}`), "spec.algorithm.baseline.probeSamples", "should be greater than or equal to 1"},
	"a probe of 1001 samples":         {poolAlgorithm(`baseline: {probeSamples: 1001}`), "spec.algorithm.baseline.probeSamples", "should be less than or equal to 1000"},
	"an empty list of what to ignore": {poolAlgorithm(`ignore: []`), "spec.algorithm.ignore", "should have at least 1 items"},
	"nine requests to ignore":         {poolAlgorithm(`ignore: ` + repeat(9, `{methods: [M%d]}`)), "spec.algorithm.ignore", "must have at most 8 items"},
	"a match to ignore without terms": {poolAlgorithm(`ignore: [{}]`), "spec.algorithm.ignore[0]", "set at least one of methods, paths, headers, hosts"},

	"an aggregate that does not exist":  {poolWith(`aggregate: Sum`), "spec.aggregate", `supported values: "Median", "Min"`},
	"an allocation that does not exist": {poolWith(`allocation: Weighted`), "spec.allocation", `supported values: "EqualSplit", "DemandProportional"`},
	"guarantees where demand decides": {
		poolWith(`allocation: DemandProportional, partitions: [{name: a, match: [{methods: [GET]}]}, {name: b, guaranteedPercent: 1}]`),
		"spec.allocation", "set allocation to EqualSplit, or remove guaranteedPercent from partitions",
	},
	"a handoff that does not exist":      {poolWith(`handoff: Immediate`), "spec.handoff", `supported values: "Acknowledged", "Occupancy"`},
	"an outage action that is not known": {poolWith(`onCoordinatorOutage: {action: Allow}`), "spec.onCoordinatorOutage.action", `supported values: "FailClosed", "LocalOnly"`},

	"an interval below 10ms":             {heartbeat(`interval: 9ms`), "spec.heartbeat.interval", "write whole numbers of m, s and ms, such as 500ms or 1s"},
	"an interval over a minute":          {heartbeat(`interval: 61s, leaseTTL: 60s`), "spec.heartbeat.leaseTTL", "shorten interval, or raise leaseTTL to twice interval, which cannot be undone"},
	"an interval without a unit":         {heartbeat(`interval: "1"`), "spec.heartbeat.interval", "not a duration of 10ms or more"},
	"an interval that is a number":       {heartbeat(`interval: 1`), "spec.heartbeat.interval", "must be of type string"},
	"a lease below 100ms":                {heartbeat(`interval: 10ms, leaseTTL: 99ms`), "spec.heartbeat.leaseTTL", "not a duration from 100ms to 1m"},
	"a lease over a minute":              {heartbeat(`leaseTTL: 60001ms`), "spec.heartbeat.leaseTTL", "not a duration from 100ms to 1m"},
	"a lease that is a word":             {heartbeat(`leaseTTL: long`), "spec.heartbeat.leaseTTL", "not a duration from 100ms to 1m"},
	"a lease as long as the interval":    {heartbeat(`interval: 2s, leaseTTL: 2000ms`), "spec.heartbeat.leaseTTL", "shorten interval, or raise leaseTTL to twice interval, which cannot be undone"},
	"an interval above the usual lease":  {heartbeat(`interval: 3s`), "spec.heartbeat.leaseTTL", "shorten interval, or raise leaseTTL to twice interval, which cannot be undone"},
	"a lease below the usual interval":   {heartbeat(`leaseTTL: 500ms`), "spec.heartbeat.leaseTTL", "shorten interval, or raise leaseTTL to twice interval, which cannot be undone"},
	"an eager that does not exist":       {heartbeat(`eager: Sometimes`), "spec.heartbeat.eager", `supported values: "Enabled", "Disabled"`},
	"no minInterval":                     {heartbeat(`minInterval: 0ms`), "spec.heartbeat.minInterval", "not a duration of 1ms or more"},
	"a minInterval longer than interval": {heartbeat(`minInterval: 1001ms`), "spec.heartbeat.minInterval", "shorten minInterval, or remove it"},
	"a short interval, not minInterval":  {heartbeat(`interval: 50ms, minInterval: 100ms`), "spec.heartbeat.minInterval", "shorten minInterval, or remove it"},
	"no margin":                          {poolWith(`selfFence: {margin: 0s}`), "spec.selfFence.margin", "not a duration of 1ms or more"},
	"a margin that is negative":          {poolWith(`selfFence: {margin: "-1s"}`), "spec.selfFence.margin", "not a duration of 1ms or more"},
	"a margin of all that is left":       {poolWith(`selfFence: {margin: 1s}`), "spec.selfFence.margin", "shorten margin, or raise heartbeat.leaseTTL, which cannot be undone"},
	"a margin longer than the lease":     {poolWith(`selfFence: {margin: 1m}`), "spec.selfFence.margin", "shorten margin, or raise heartbeat.leaseTTL, which cannot be undone"},
	"a margin and a lease that is wrong": {poolWith(`selfFence: {margin: 500ms}, heartbeat: {interval: 3s, leaseTTL: 3s}`), "spec.heartbeat.leaseTTL", "raise leaseTTL to twice interval"},
	"an onFenced that does not exist":    {poolWith(`selfFence: {onFenced: Kill}`), "spec.selfFence.onFenced", `supported values: "Drain", "Abort"`},

	"a coordinator that is not known":           {coordinator(`type: Etcd`), "spec.coordinator.type", `supported values: "Controller", "Redis", "Postgres"`},
	"a Redis coordinator without a server":      {coordinator(`type: Redis`), "spec.coordinator.redis", "set redis.address to host:port"},
	"a Redis coordinator without an address":    {coordinator(`type: Redis, redis: {}`), "spec.coordinator.redis", "set exactly one of address (a single server), sentinel, cluster and rest"},
	"a Redis address with a scheme":             {coordinator(`type: Redis, redis: {address: "redis://r:6379"}`), "spec.coordinator.redis.address", notHostPort},
	"a server for the controller":               {coordinator(`redis: {address: "r:6379"}`), "spec.coordinator.redis", "remove it, or set type to Redis"},
	"a Postgres coordinator without a server":   {coordinator(`type: Postgres`), "spec.coordinator.postgres", "set postgres.address and postgres.database"},
	"a Postgres coordinator without a database": {coordinator(`type: Postgres, postgres: {address: "pg:5432"}`), "spec.coordinator.postgres.database", "Required value"},

	"an empty list of matches":     {poolWith(`match: []`), "spec.match", "should have at least 1 items"},
	"nine matches":                 {poolWith(`match: ` + repeat(9, `{methods: [M%d]}`)), "spec.match", "must have at most 8 items"},
	"a match without terms":        {poolWith(`match: [{}]`), "spec.match[0]", "or remove it (the list, too"},
	"a match of descriptors":       {poolWith(`match: [{descriptors: [{key: a}]}]`), "spec.match", "move them to a RateLimitPolicy"},
	"an empty list of exemptions":  {poolWith(`exempt: []`), "spec.exempt", "should have at least 1 items"},
	"nine exemptions":              {poolWith(`exempt: ` + repeat(9, `{methods: [M%d]}`)), "spec.exempt", "must have at most 8 items"},
	"an exemption of a bad path":   {poolWith(`exempt: [{paths: [{value: healthz}]}]`), "spec.exempt[0].paths[0].value", "write /orders instead of orders"},
	"an exemption without terms":   {poolWith(`exempt: [{}]`), "spec.exempt[0]", "or remove it (the list, too"},
	"a partition without terms":    {partitions(`[{name: a, match: [{}]}]`), "spec.partitions[0].match[0]", "set at least one of methods, paths, headers, hosts"},
	"an empty list of partitions":  {partitions(`[]`), "spec.partitions", "should have at least 1 items"},
	"17 partitions":                {partitions(repeat(17, `{name: p%d, match: [{methods: [GET]}]}`)), "spec.partitions", "must have at most 16 items"},
	"a partition without a name":   {partitions(`[{guaranteedPercent: 1}]`), "spec.partitions[0].name", "Required value"},
	"a partition in upper case":    {partitions(`[{name: Live}]`), "spec.partitions[0].name", notALabel},
	"a partition of 64 characters": {partitions(`[{name: ` + strings.Repeat("a", 64) + `}]`), "spec.partitions[0].name", "may not be more than 63"},
	"two partitions of one name":   {partitions(`[{name: a, match: [{methods: [GET]}]}, {name: a}]`), "spec.partitions", "rename one of them"},
	"a guarantee below nothing":    {partitions(`[{name: a, guaranteedPercent: -1}]`), "spec.partitions[0].guaranteedPercent", "should be greater than or equal to 0"},
	"a guarantee of 101 percent":   {partitions(`[{name: a, guaranteedPercent: 101}]`), "spec.partitions", "add up to more than 100: lower some of them"},
	"guarantees of 101 percent":    {partitions(`[{name: a, guaranteedPercent: 60, match: [{methods: [GET]}]}, {name: b, guaranteedPercent: 41}]`), "spec.partitions", "add up to more than 100: lower some of them"},
	"a partition behind all":       {partitions(`[{name: rest}, {name: live, match: [{methods: [GET]}]}]`), "spec.partitions", "move it to the end, or set its match"},
	"two partitions of all":        {partitions(`[{name: rest}, {name: more}]`), "spec.partitions", "move it to the end, or set its match"},
	"a partition with no entry":    {partitions(`[{name: a, match: []}]`), "spec.partitions[0].match", "should have at least 1 items"},
	"a partition of nine entries":  {partitions(`[{name: a, match: ` + repeat(9, `{methods: [M%d]}`) + `}]`), "spec.partitions[0].match", "must have at most 8 items"},
	"an exemption of descriptors":  {poolWith(`exempt: [{descriptors: [{key: a}]}]`), "spec.exempt", "move them to a RateLimitPolicy"},
	"descriptors to ignore":        {poolAlgorithm(`ignore: [{descriptors: [{key: a}]}]`), "spec.algorithm.ignore", "move them to a RateLimitPolicy"},
	"a partition of descriptors":   {partitions(`[{name: a, match: [{descriptors: [{key: a}]}]}]`), "spec.partitions[0].match", "move them to a RateLimitPolicy"},
	"a queue of a key of 10001":    {poolKey(`limit: 1, parts: [{type: Path}], queue: {maxLength: 10001, maxWait: 1s}`), "spec.key.queue.maxLength", "should be less than or equal to 10000"},
	"a queue without a length":     {poolWith(`queue: {maxWait: 1s}`), "spec.queue.maxLength", "Required value"},
	"a queue without a wait":       {poolWith(`queue: {maxLength: 1}`), "spec.queue.maxWait", "Required value"},
	"a queue of nobody":            {poolWith(`queue: {maxLength: 0, maxWait: 1s}`), "spec.queue.maxLength", "should be greater than or equal to 1"},
	"a queue of 10001":             {poolWith(`queue: {maxLength: 10001, maxWait: 1s}`), "spec.queue.maxLength", "should be less than or equal to 10000"},
	"a queue without patience":     {poolWith(`queue: {maxLength: 1, maxWait: 0s}`), "spec.queue.maxWait", "not a duration from 1ms to 1h"},
	"a queue for more than an hour": {
		poolWith(`queue: {maxLength: 1, maxWait: 61m}`), "spec.queue.maxWait", "not a duration from 1ms to 1h",
	},
	"a status that is not ours": {poolWith(`response: {statusCode: 500}`), "spec.response.statusCode", `supported values: "429", "503"`},
}

func TestInvalidPoolsAreRefused(t *testing.T) {
	for name, tc := range invalidPools {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, newPool(t, tc.spec), tc)
		})
	}
}
