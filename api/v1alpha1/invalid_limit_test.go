package v1alpha1_test

import "strings"

const (
	aRate     = `rates: [{limit: 1, window: 1s}]`
	aKey      = `key: {parts: [{type: Path}]}`
	aTenant   = `tenant: {type: Header, header: {name: x-tenant}}`
	notOffset = "write a sign, two digits for hours, a colon and two for minutes"
	notADelay = "not a duration from 1ms to 1h"
)

// invalidLimits are wrong about an algorithm and its settings.
var invalidLimits = map[string]invalid{
	"an algorithm that does not exist": {withAlgorithm(`Fixed`, aRate), "spec.limits[0].algorithm", `supported values: "FixedWindow", "SlidingWindow", "SlidingLog", "TokenBucket", "GCRA", "LeakyBucket", "Quota"`},
	"a limit in a mode of its own":     {withLimit(`mode: DryRun`), "spec.limits[0].mode", `supported values: "Enforce", "Shadow"`},
	"an exemption of everything":       {withLimit(`exempt: [{}]`), "spec.limits[0].exempt[0]", "set at least one of methods, paths, headers, hosts"},
	"nine exemptions":                  {withLimit(`exempt: ` + repeat(9, `{methods: [GET]}`)), "spec.limits[0].exempt", "must have at most 8 items"},
	"rates that half combine":          {withLimit(`combine: Some`), "spec.limits[0].combine", `supported values: "All", "Any"`},

	"a burst of a fixed window":        {withAlgorithm(`FixedWindow`, `rates: [{limit: 1, window: 1s, burst: 2}]`), "spec.limits[0].rates", "remove burst, or set algorithm to TokenBucket"},
	"a burst of a leaky bucket":        {withAlgorithm(`LeakyBucket`, `maxDelay: 1s, rates: [{limit: 1, window: 1s, burst: 2}]`), "spec.limits[0].rates", "remove burst, or set algorithm to TokenBucket"},
	"a burst of an override":           {withAlgorithm(`SlidingLog`, aRate+`, `+aKey+`, overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, window: 1s, burst: 2}]}]`), "spec.limits[0].overrides", "remove burst, or set algorithm to TokenBucket"},
	"a burst of nothing":               {withAlgorithm(`GCRA`, `rates: [{limit: 1, window: 1s, burst: 0}]`), "spec.limits[0].rates[0].burst", "should be greater than or equal to 1"},
	"a burst of too much":              {withAlgorithm(`GCRA`, `rates: [{limit: 1, window: 1s, burst: 1000000000001}]`), "spec.limits[0].rates[0].burst", "should be less than or equal to 1000000000000"},
	"a calendar without a quota":       {withAlgorithm(`FixedWindow`, `rates: [{limit: 1, cadence: Day}]`), "spec.limits[0].rates", "write a window instead, or set algorithm to Quota"},
	"a calendar of an override":        {withAlgorithm(`FixedWindow`, aRate+`, `+aKey+`, overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, cadence: Day}]}]`), "spec.limits[0].overrides", "write a window instead, or set algorithm to Quota"},
	"a cadence that does not exist":    {withAlgorithm(`Quota`, `rates: [{limit: 1, cadence: Year}]`), "spec.limits[0].rates[0].cadence", `supported values: "Hour", "Day", "Week", "Month"`},
	"a cadence and a window":           {withAlgorithm(`Quota`, `rates: [{limit: 1, cadence: Day, window: 24h}]`), "spec.limits[0].rates[0]", "set exactly one of window"},
	"a quota without either":           {withAlgorithm(`Quota`, `rates: [{limit: 1}]`), "spec.limits[0].rates[0]", "set exactly one of window"},
	"one cadence twice":                {withAlgorithm(`Quota`, `rates: [{limit: 1, cadence: Day}, {limit: 2, window: 1s}, {limit: 3, cadence: Day}]`), "spec.limits[0].rates", "keep the one with the smaller limit"},
	"a clock without a quota":          {withLimit(`utcOffset: "+02:00"`), "spec.limits[0].utcOffset", "remove it, or set algorithm to Quota"},
	"a clock by its zone":              {withAlgorithm(`Quota`, aRate+`, utcOffset: CET`), "spec.limits[0].utcOffset", notOffset},
	"a clock without a sign":           {withAlgorithm(`Quota`, aRate+`, utcOffset: "02:00"`), "spec.limits[0].utcOffset", notOffset},
	"a clock beyond the earth":         {withAlgorithm(`Quota`, aRate+`, utcOffset: "+14:01"`), "spec.limits[0].utcOffset", notOffset},
	"a clock with 60 minutes":          {withAlgorithm(`Quota`, aRate+`, utcOffset: "+01:60"`), "spec.limits[0].utcOffset", notOffset},
	"buckets of a fixed window":        {withLimit(`buckets: 10`), "spec.limits[0].buckets", "remove it, or set algorithm to SlidingWindow"},
	"buckets of a sliding log":         {withAlgorithm(`SlidingLog`, aRate+`, buckets: 10`), "spec.limits[0].buckets", "remove it, or set algorithm to SlidingWindow"},
	"no buckets":                       {withAlgorithm(`SlidingWindow`, aRate+`, buckets: 0`), "spec.limits[0].buckets", "should be greater than or equal to 1"},
	"1001 buckets":                     {withAlgorithm(`SlidingWindow`, aRate+`, buckets: 1001`), "spec.limits[0].buckets", "should be less than or equal to 1000"},
	"a delay of a token bucket":        {withAlgorithm(`TokenBucket`, aRate+`, maxDelay: 1s`), "spec.limits[0].maxDelay", "remove it, or set algorithm to LeakyBucket"},
	"a leaky bucket without a delay":   {withAlgorithm(`LeakyBucket`, aRate), "spec.limits[0].maxDelay", "set maxDelay to less than what clients wait for"},
	"a delay of nothing":               {withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 0s`), "spec.limits[0].maxDelay", notADelay},
	"a delay of more than an hour":     {withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 1h1ms`), "spec.limits[0].maxDelay", notADelay},
	"a leaky bucket with two holes":    {withAlgorithm(`LeakyBucket`, `maxDelay: 1s, rates: [{limit: 1, window: 1s}, {limit: 1, window: 1m}]`), "spec.limits[0].rates", "keep the slowest of the rates"},
	"an override with two holes":       {withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 1s, `+aKey+`, overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, window: 1s}, {limit: 1, window: 1m}]}]`), "spec.limits[0].rates", "keep the slowest of the rates"},
	"a leaky bucket that combines Any": {withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 1s, combine: Any`), "spec.limits[0].combine", "set combine to All"},

	"overrides without a key":      {withLimit(`overrides: [{values: [{parts: [a]}], ` + aRate + `}]`), "spec.limits[0].overrides", "set key, or remove overrides"},
	"no overrides":                 {withLimit(aKey + `, overrides: []`), "spec.limits[0].overrides", "should have at least 1 items"},
	"33 overrides":                 {withLimit(aKey + `, overrides: ` + repeat(33, `{values: [{parts: [/%d]}], `+aRate+`}`)), "spec.limits[0].overrides", "must have at most 32 items"},
	"an override without values":   {withLimit(aKey + `, overrides: [{` + aRate + `}]`), "spec.limits[0].overrides[0].values", "Required value"},
	"an override of 65 values":     {withLimit(aKey + `, overrides: [{` + aRate + `, values: ` + repeat(65, `{parts: [/%d]}`) + `}]`), "spec.limits[0].overrides[0].values", "must have at most 64 items"},
	"an override without rates":    {withLimit(aKey + `, overrides: [{values: [{parts: [/a]}]}]`), "spec.limits[0].overrides[0].rates", "Required value"},
	"a value without parts":        {withLimit(aKey + `, overrides: [{values: [{}], ` + aRate + `}]`), "spec.limits[0].overrides[0].values[0].parts", "Required value"},
	"a value with an empty part":   {withLimit(aKey + `, overrides: [{values: [{parts: [""]}], ` + aRate + `}]`), "spec.limits[0].overrides[0].values[0].parts[0]", "should be at least 1 chars long"},
	"a value with a part too many": {withLimit(aKey + `, overrides: [{values: [{parts: [/a]}, {parts: [/a, GET]}], ` + aRate + `}]`), "spec.limits[0].overrides", "write one string for each of key.parts"},
	"a value with a part too few":  {withLimit(`key: {parts: [{type: Path}, {type: Method}]}, overrides: [{values: [{parts: [/a]}], ` + aRate + `}]`), "spec.limits[0].overrides", "write one string for each of key.parts"},

	"a cost by header without a most": {withLimit(`cost: {requestHeader: x-cost}`), "spec.limits[0].cost.max", "set max to the most that one request may be charged"},
	"a cost by response without one":  {withLimit(`cost: {responseHeader: x-cost}`), "spec.limits[0].cost.max", "set max to the most that one request may be charged"},
	"a most that no header names":     {withLimit(`cost: {default: 2, max: 5}`), "spec.limits[0].cost.max", "remove it, or set one of these"},
	"a default above the most":        {withLimit(`cost: {default: 6, max: 5, requestHeader: x-cost}`), "spec.limits[0].cost.default", "raise max, or lower default"},
	"a cost of nothing":               {withLimit(`cost: {default: 0}`), "spec.limits[0].cost.default", "should be greater than or equal to 1"},
	"a cost header with a bad name":   {withLimit(`cost: {max: 5, requestHeader: "x cost"}`), "spec.limits[0].cost.requestHeader", notAHeader},
	"a response that frees a queue":   {withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 1s, cost: {max: 5, responseHeader: x-cost}`), "spec.limits[0].cost.responseHeader", "use requestHeader, or another algorithm"},

	"fairness without a tenant":        {withLimit(`fairness: {}`), "spec.limits[0].fairness.tenant", "Required value"},
	"a tenant by a nameless header":    {withLimit(`fairness: {tenant: {type: Header}}`), "spec.limits[0].fairness.tenant.header", "set header.name"},
	"a tenant declared twice":          {withLimit(`fairness: {` + aTenant + `, weights: ` + repeat(2, `{tenant: a, weight: 1}`) + `}`), "spec.limits[0].fairness.weights[1]", "Duplicate value"},
	"65 tenants":                       {withLimit(`fairness: {` + aTenant + `, weights: ` + repeat(65, `{tenant: t%d, weight: 1}`) + `}`), "spec.limits[0].fairness.weights", "must have at most 64 items"},
	"a tenant without weight":          {withLimit(`fairness: {` + aTenant + `, weights: [{tenant: a, weight: 0}]}`), "spec.limits[0].fairness.weights[0].weight", "should be greater than or equal to 1"},
	"a tenant that weighs too much":    {withLimit(`fairness: {` + aTenant + `, weights: [{tenant: a, weight: 1001}]}`), "spec.limits[0].fairness.weights[0].weight", "should be less than or equal to 1000"},
	"nothing to reserve":               {withLimit(`fairness: {` + aTenant + `, reserve: true}`), "spec.limits[0].fairness.reserve", "none is declared"},
	"others without weight":            {withLimit(`fairness: {` + aTenant + `, defaultWeight: 0}`), "spec.limits[0].fairness.defaultWeight", "should be greater than or equal to 1"},
	"fairness of a token bucket":       {withAlgorithm(`TokenBucket`, aRate+`, fairness: {`+aTenant+`}`), "spec.limits[0].fairness", "set algorithm to FixedWindow, or remove fairness and use a key"},
	"fairness of a sliding window":     {withAlgorithm(`SlidingWindow`, aRate+`, fairness: {`+aTenant+`}`), "spec.limits[0].fairness", "set algorithm to FixedWindow, or remove fairness and use a key"},
	"fairness of a leaky bucket":       {withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 1s, fairness: {`+aTenant+`}`), "spec.limits[0].fairness", "set algorithm to FixedWindow, or remove fairness and use a key"},
	"fairness of two rates":            {withAlgorithm(`Quota`, `rates: [{limit: 1, window: 1s}, {limit: 10, cadence: Day}], fairness: {`+aTenant+`}`), "spec.limits[0].fairness", "keep one of the rates, and put the others into a limit of their own"},
	"fairness of two overriding rates": {withLimit(aKey + `, fairness: {` + aTenant + `}, overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, window: 1s}, {limit: 2, window: 2s}]}]`), "spec.limits[0].fairness", "keep one of the rates"},
	"fairness of any rate":             {withLimit(`combine: Any, fairness: {` + aTenant + `}`), "spec.limits[0].fairness", "set combine to All, or remove fairness"},
	"a tenant's name too long":         {withLimit(`fairness: {` + aTenant + `, weights: [{tenant: ` + strings.Repeat("a", 1025) + `, weight: 1}]}`), "spec.limits[0].fairness.weights[0].tenant", "may not be more than 1024"},
}
