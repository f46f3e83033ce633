package webhook

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	// maxAllocated is how much memory one review may allocate in all, in bytes.
	maxAllocated = 64 << 20

	// maxProcessor is a safety net and no figure of what a review costs, which is up to half a
	// second: without bounds the reviews below take minutes, or never end.
	maxProcessor = 10 * time.Second
)

// A text is JSON with up to two parts that are repeated. A # in such a part stands for the
// number of the repetition.
type text struct {
	start string
	part1 string
	n1    int
	mid   string
	part2 string
	n2    int
	end   string
}

func (x text) bytes() []byte {
	var b bytes.Buffer
	repeat := func(part string, n int) {
		for i := 0; i < n && part != "" && b.Len() < maxReview+1<<20; i++ {
			b.WriteString(strings.ReplaceAll(part, "#", strconv.Itoa(i)))
		}
	}
	b.WriteString(x.start)
	repeat(x.part1, x.n1)
	b.WriteString(x.mid)
	repeat(x.part2, x.n2)
	b.WriteString(x.end)
	return b.Bytes()
}

const (
	head     = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"a-uid","operation":"CREATE","namespace":"shop",`
	tail     = `}}`
	metadata = head + `"object":{"metadata":{`
	spec     = head + `"object":{"spec":{`
	app      = `{"name":"app","ports":[{"name":"http","containerPort":8080}]}`
	last     = `]}}` + tail
)

// hostile returns reviews that take minutes, gigabytes or both where nothing bounds them, and
// a part of the answer.
func hostile() map[string]struct {
	text
	want string
} {
	cases := map[string]struct {
		text
		want string
	}{
		"a long number in an annotation":   {text{start: metadata + `"annotations":{"config.weir.dev/sidecar-cpu-limit":"`, part1: "9", n1: 2 << 20, end: `"}}}` + tail}, "bytes of annotations"},
		"a costly quantity of a container": {text{start: spec + `"containers":[{"resources":{"limits":{"cpu":"1e-9999999"}}}` + last}, "spec.containers[0].resources.limits.cpu: a quantity"},
		"a costly number of the pod":       {text{start: spec + `"overhead":{"cpu":1e-2147483648}}}` + tail}, "spec.overhead.cpu: a quantity"},
		"a long quantity":                  {text{start: spec + `"overhead":{"cpu":"1.`, part1: "0", n1: 2 << 20, end: `"}}}` + tail}, "spec.overhead.cpu: a quantity"},

		"3000 ports and 30,000 numbers": {text{
			metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, "#,", 30_000, `1"}},"spec":{"containers":[{"name":"app","ports":[`,
			`{"name":"http-#","containerPort":#},`, 3000, `{}]}` + last,
		}, "it has 30001 entries"},
		"3000 ports and 20 numbers": {text{
			metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, "#00,", 20, `1"}},"spec":{"containers":[{"name":"app","ports":[`,
			`{"name":"http-#","containerPort":#},`, 3000, `{}]}` + last,
		}, "0 is not a port number"},
		"3000 ports and 4 numbers": {text{
			metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, "9#00,", 3, `1"}},"spec":{"containers":[{"name":"app","ports":[`,
			`{"name":"http-#","containerPort":#},`, 3000, `{}]}` + last,
		}, `"patch"`},
		"90,000 volumes":     {text{start: spec + `"volumes":[`, part1: `{"name":"weir-token-#"},`, n1: 90_000, end: `{"name":"weir-token"}],"containers":[` + app + last}, "spec.volumes["},
		"500 volumes":        {text{start: spec + `"volumes":[`, part1: `{"name":"weir-token-#"},`, n1: 499, end: `{"name":"weir-token"}],"containers":[` + app + last}, `"patch"`},
		"every port":         {text{start: spec + `"containers":[{"name":"app","ports":[`, part1: `{"containerPort":#},`, n1: 65_535, end: `{}]}` + last}, "which the sidecar's check API needs"},
		"30,000 other ports": {text{start: spec + `"containers":[{"name":"app","ports":[`, part1: `{"containerPort":2#},`, n1: 30_000, end: `{}]}` + last}, "ports, and a pod with a sidecar up to"},
		"10,000 ports":       {text{start: spec + `"containers":[{"name":"app","ports":[`, part1: `{"containerPort":2#},`, n1: 9_998, end: `{"name":"http","containerPort":80}]}` + last}, `"patch"`},
		"10,000 ports of one name": {text{
			start: spec + `"containers":[{"name":"app","ports":[`, part1: `{"name":"http","containerPort":2#},`, n1: 9_998,
			end: `{"name":"http-app","containerPort":80}]}` + last,
		}, `"patch"`},
		"30,000 native sidecars": {text{start: spec + `"containers":[` + app + `],"initContainers":[`, part1: `{"name":"s-#","restartPolicy":"Always"},`, n1: 30_000, end: `{}` + last}, "spec.initContainers["},
		"498 native sidecars that are asked": {text{
			start: spec + `"containers":[` + app + `],"initContainers":[`,
			part1: `{"name":"s-#","restartPolicy":"Always","livenessProbe":{"tcpSocket":{"port":8080}},"startupProbe":{"httpGet":{"port":8080,"path":"/<>$\""}}},`, n1: 498, end: `{}` + last,
		}, `"patch"`},
		"60,000 numbers":                   {text{start: metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, part1: "#,", n1: 60_000, end: `1"}},"spec":{"containers":[` + app + last}, "bytes of annotations"},
		"3 misspelt annotations of 950 KB": {text{metadata + `"annotations":{"weir.dev/`, "inbound-p", 105_000, `":"","weir.dev/x`, "inbound-p", 105_000, `":""}}}` + tail}, "bytes of annotations"},
		"a misspelt annotation of 200 KB":  {text{start: metadata + `"annotations":{"config.weir.dev/`, part1: "inbound-p", n1: 22_000, end: `":""}}}` + tail}, "is not known"},
		"38,000 misspelt annotations":      {text{start: metadata + `"annotations":{`, part1: `"config.weir.dev/inbound-portz-0123456789012345678901234567890123456789-#":"",`, n1: 38_000, end: `"a":""}}}` + tail}, "bytes of annotations"},
		"5,000 misspelt annotations":       {text{start: metadata + `"annotations":{`, part1: `"config.weir.dev/inbound-portz-#":"",`, n1: 5_000, end: `"a":""}}}` + tail}, " more warnings are left out"},
		"7 MB of misspelt labels":          {text{start: metadata + `"labels":{`, part1: `"weir.dev/#":"",`, n1: 350_000, end: `"a":""}}}` + tail}, "bytes as JSON"},

		"7 MB of empty containers":    {text{start: spec + `"containers":[`, part1: "{},", n1: 2_300_000, end: `{}` + last}, "bytes as JSON"},
		"3 MB of empty containers":    {text{start: spec + `"containers":[`, part1: "{},", n1: 1_000_000, end: `{}` + last}, "spec.containers["},
		"3 MB of empty owners":        {text{start: metadata + `"ownerReferences":[`, part1: "{},", n1: 1_000_000, end: `{}]}}` + tail}, "metadata.ownerReferences["},
		"65,000 owners":               {text{start: metadata + `"ownerReferences":[`, part1: "{},", n1: 65_000, end: `{}]}}` + tail}, `"patch"`},
		"120,000 variables":           {text{start: spec + `"containers":[{"name":"app","env":[`, part1: `{"value":"<#>"},`, n1: 110_000, end: `{}]}` + last}, `"patch"`},
		"3 MB of one argument":        {text{start: spec + `"containers":[{"name":"app","args":["`, part1: "<", n1: 3_000_000, end: `"]}` + last}, `"patch"`},
		"3 MB of probe":               {text{start: spec + `"containers":[{"name":"app","ports":[{"name":"http","containerPort":8080}],"livenessProbe":{"httpGet":{"port":"http","path":"`, part1: "<", n1: 3_000_000, end: `"}}}` + last}, "bytes of paths, headers"},
		"32 KB of probe":              {text{start: spec + `"containers":[{"name":"app","ports":[{"name":"http","containerPort":8080}],"livenessProbe":{"httpGet":{"port":"http","path":"`, part1: "<", n1: 32_000, end: `"}}}` + last}, `"patch"`},
		"3 MB of an owner":            {text{start: metadata + `"ownerReferences":[{"controller":true,"name":"`, part1: "o", n1: 3_000_000, end: `"}]}}` + tail}, `"patch"`},
		"3 MB of a port's name":       {text{start: spec + `"containers":[{"name":"app","ports":[{"containerPort":80,"name":"http`, part1: "p", n1: 3_000_000, end: `"}]}` + last}, "no HTTP port found"},
		"an old object of 7 MB":       {text{start: head + `"oldObject":{"spec":{"containers":[`, part1: "{},", n1: 2_300_000, end: `{}` + last}, "bytes as JSON"},
		"a user of a million groups":  {text{start: head + `"userInfo":{"groups":[`, part1: `"",`, n1: 2_000_000, end: `""]}` + tail}, "request.userInfo.groups["},
		"a user of many values":       {text{start: head + `"userInfo":{"extra":{`, part1: `"#":[],`, n1: 500_000, end: `"":[]}}` + tail}, "request.userInfo.extra"},
		"7 MB of brackets":            {text{start: head + `"object":`, part1: "[", n1: 7_000_000}, "not JSON"},
		"an object that is a list":    {text{start: head + `"object":[`, part1: "{},", n1: 1_000_000, end: `{}]` + tail}, "not a JSON object"},
		"8 MB":                        {text{part1: "[", n1: 9_000_000}, "too long"},
		"YAML":                        {text{start: "a: &a [x]\n", part1: "b#: [*a,*a,*a]\n", n1: 100_000}, "not JSON"},
		"aliases":                     {text{start: "[", part1: "{}, ", n1: 1_000_000, end: "{}]"}, "decode the review"},
		"a body that is not a review": {text{start: `{}`}, "not the request of an AdmissionReview"},
	}
	for _, key := range []string{"sidecar-cpu-request", "sidecar-cpu-limit", "sidecar-memory-request", "sidecar-memory-limit"} {
		for _, value := range []string{"1e9999999", "1e-9999999", "1e2147483647", "1e-2147483648", "1E99999999"} {
			c := cases["a long number in an annotation"]
			c.text = text{start: metadata + `"annotations":{"config.weir.dev/` + key + `":"` + value + `"}},"spec":{"containers":[` + app + last}
			c.want = "without a sign or an exponent; the default is used"
			cases[key+" "+value] = c
		}
	}
	return cases
}

func TestHostileReviews(t *testing.T) {
	post := reviews(t)
	for name, tc := range hostile() {
		t.Run(name, func(t *testing.T) {
			if answer := post(t, tc.bytes()); !strings.Contains(answer.Body.String(), tc.want) {
				t.Errorf("%d %.1000s, want an answer that says %s", answer.Code, answer.Body, tc.want)
			}
		})
	}
}

// FuzzReviews gives any text to the whole handler, long ones among them.
func FuzzReviews(f *testing.F) {
	for _, tc := range hostile() {
		x := tc.text
		f.Add(x.start, x.part1, x.n1, x.mid, x.part2, x.n2, x.end)
	}
	post := reviews(f)
	f.Fuzz(func(t *testing.T, start, part1 string, n1 int, mid, part2 string, n2 int, end string) {
		post(t, text{start, part1, n1, mid, part2, n2, end}.bytes())
	})
}

// reviews returns a function that has a review answered as the controller does, and fails
// the test when that costs too much.
func reviews(t testing.TB) func(*testing.T, []byte) *httptest.ResponseRecorder {
	pods, events := newInjector()
	pods.Config.Capture = "redirect"
	served := hooks{by: map[string]http.Handler{}}
	Register(served, ourScheme(t), pods, fake.NewClientBuilder().WithScheme(ourScheme(t)).Build(), "us-east")
	return func(t *testing.T, body []byte) *httptest.ResponseRecorder {
		events.lines = nil
		request := httptest.NewRequest(http.MethodPost, InjectPath, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		answer := &httptest.ResponseRecorder{Body: bytes.NewBuffer(make([]byte, 0, 8<<20))}
		allocated, processor := consumed(t)
		served.by[InjectPath].ServeHTTP(answer, request)
		allocatedNow, processorNow := consumed(t)
		if n := allocatedNow - allocated; n > maxAllocated {
			t.Errorf("%d bytes allocated for a review of %d, want up to %d", n, len(body), maxAllocated)
		}
		if d := processorNow - processor; d > maxProcessor {
			t.Errorf("%s of processor time for a review of %d bytes, want up to %s", d, len(body), maxProcessor)
		}
		if testing.Verbose() {
			t.Logf("%d bytes: %d MiB, %s", len(body), (allocatedNow-allocated)>>20, processorNow-processor)
		}
		if n := len(events.lines); n > 25 {
			t.Errorf("%d Events for one pod", n)
		}
		return answer
	}
}

// consumed returns what this process has allocated and how long it has run.
func consumed(t *testing.T) (allocated uint64, processor time.Duration) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return memory.TotalAlloc, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
