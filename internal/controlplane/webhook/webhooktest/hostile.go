package webhooktest

import (
	"bytes"
	"strconv"
	"strings"
)

// longest is more bytes than are read of any review.
const longest = 8 << 20

// A Text is JSON with up to two parts that are repeated. A # in such a part stands for the
// number of the repetition.
type Text struct {
	Start string
	Part1 string
	N1    int
	Mid   string
	Part2 string
	N2    int
	End   string
}

// Bytes returns the JSON, which is no longer than some bytes more than are read of a review.
func (x Text) Bytes() []byte {
	var b bytes.Buffer
	repeat := func(part string, n int) {
		before, after, numbered := strings.Cut(part, "#")
		for i := 0; i < n && part != "" && b.Len() < longest; i++ {
			b.WriteString(before)
			if numbered {
				b.WriteString(strconv.Itoa(i))
				b.WriteString(strings.ReplaceAll(after, "#", strconv.Itoa(i)))
			}
		}
	}
	b.WriteString(x.Start)
	repeat(x.Part1, x.N1)
	b.WriteString(x.Mid)
	repeat(x.Part2, x.N2)
	b.WriteString(x.End)
	return b.Bytes()
}

// Parts of reviews.
const (
	Head     = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"a-uid","operation":"CREATE","namespace":"shop",`
	Tail     = `}}`
	Metadata = Head + `"object":{"metadata":{`
	Spec     = Head + `"object":{"spec":{`
	App      = `{"name":"app","ports":[{"name":"http","containerPort":8080}]}`
	Last     = `]}}` + Tail
)

// A Review is one that takes minutes, gigabytes or both where nothing bounds it.
type Review struct {
	Text
	Want string // a part of the answer
}

// Hostile returns such reviews by name, of pods in the namespace shop.
func Hostile() map[string]Review {
	cases := map[string]Review{
		"a long number in an annotation":   {Text{Start: Metadata + `"annotations":{"config.weir.dev/sidecar-cpu-limit":"`, Part1: "9", N1: 2 << 20, End: `"}}}` + Tail}, "bytes of annotations"},
		"a costly quantity of a container": {Text{Start: Spec + `"containers":[{"resources":{"limits":{"cpu":"1e-9999999"}}}` + Last}, "spec.containers[0].resources.limits.cpu: a quantity"},
		"a costly number of the pod":       {Text{Start: Spec + `"overhead":{"cpu":1e-2147483648}}}` + Tail}, "spec.overhead.cpu: a quantity"},
		"a long quantity":                  {Text{Start: Spec + `"overhead":{"cpu":"1.`, Part1: "0", N1: 2 << 20, End: `"}}}` + Tail}, "spec.overhead.cpu: a quantity"},

		"3000 ports and 30,000 numbers": {Text{
			Metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, "#,", 30_000, `1"}},"spec":{"containers":[{"name":"app","ports":[`,
			`{"name":"http-#","containerPort":#},`, 3000, `{}]}` + Last,
		}, "it has 30001 entries"},
		"3000 ports and 20 numbers": {Text{
			Metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, "#00,", 20, `1"}},"spec":{"containers":[{"name":"app","ports":[`,
			`{"name":"http-#","containerPort":#},`, 3000, `{}]}` + Last,
		}, "0 is not a port number"},
		"3000 ports and 4 numbers": {Text{
			Metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, "9#00,", 3, `1"}},"spec":{"containers":[{"name":"app","ports":[`,
			`{"name":"http-#","containerPort":#},`, 3000, `{}]}` + Last,
		}, `"patch"`},
		"90,000 volumes":     {Text{Start: Spec + `"volumes":[`, Part1: `{"name":"weir-token-#"},`, N1: 90_000, End: `{"name":"weir-token"}],"containers":[` + App + Last}, "spec.volumes["},
		"500 volumes":        {Text{Start: Spec + `"volumes":[`, Part1: `{"name":"weir-token-#"},`, N1: 499, End: `{"name":"weir-token"}],"containers":[` + App + Last}, `"patch"`},
		"every port":         {Text{Start: Spec + `"containers":[{"name":"app","ports":[`, Part1: `{"containerPort":#},`, N1: 65_535, End: `{}]}` + Last}, "which the sidecar's check API needs"},
		"30,000 other ports": {Text{Start: Spec + `"containers":[{"name":"app","ports":[`, Part1: `{"containerPort":2#},`, N1: 30_000, End: `{}]}` + Last}, "ports, and a pod with a sidecar up to"},
		"10,000 ports":       {Text{Start: Spec + `"containers":[{"name":"app","ports":[`, Part1: `{"containerPort":2#},`, N1: 9_998, End: `{"name":"http","containerPort":80}]}` + Last}, `"patch"`},
		"10,000 ports of one name": {Text{
			Start: Spec + `"containers":[{"name":"app","ports":[`, Part1: `{"name":"http","containerPort":2#},`, N1: 9_998,
			End: `{"name":"http-app","containerPort":80}]}` + Last,
		}, `"patch"`},
		"30,000 native sidecars": {Text{Start: Spec + `"containers":[` + App + `],"initContainers":[`, Part1: `{"name":"s-#","restartPolicy":"Always"},`, N1: 30_000, End: `{}` + Last}, "spec.initContainers["},
		"498 native sidecars that are asked": {Text{
			Start: Spec + `"containers":[` + App + `],"initContainers":[`,
			Part1: `{"name":"s-#","restartPolicy":"Always","livenessProbe":{"tcpSocket":{"port":8080}},"startupProbe":{"httpGet":{"port":8080,"path":"/<>$\""}}},`, N1: 498, End: `{}` + Last,
		}, `"patch"`},
		"60,000 numbers":                   {Text{Start: Metadata + `"annotations":{"config.weir.dev/inbound-ports":"`, Part1: "#,", N1: 60_000, End: `1"}},"spec":{"containers":[` + App + Last}, "bytes of annotations"},
		"3 misspelt annotations of 950 KB": {Text{Metadata + `"annotations":{"weir.dev/`, "inbound-p", 105_000, `":"","weir.dev/x`, "inbound-p", 105_000, `":""}}}` + Tail}, "bytes of annotations"},
		"a misspelt annotation of 200 KB":  {Text{Start: Metadata + `"annotations":{"config.weir.dev/`, Part1: "inbound-p", N1: 22_000, End: `":""}}}` + Tail}, "is not known"},
		"38,000 misspelt annotations":      {Text{Start: Metadata + `"annotations":{`, Part1: `"config.weir.dev/inbound-portz-0123456789012345678901234567890123456789-#":"",`, N1: 38_000, End: `"a":""}}}` + Tail}, "bytes of annotations"},
		"5,000 misspelt annotations":       {Text{Start: Metadata + `"annotations":{`, Part1: `"config.weir.dev/inbound-portz-#":"",`, N1: 5_000, End: `"a":""}}}` + Tail}, " more warnings are left out"},
		"7 MB of misspelt labels":          {Text{Start: Metadata + `"labels":{`, Part1: `"weir.dev/#":"",`, N1: 350_000, End: `"a":""}}}` + Tail}, "bytes as JSON"},

		"7 MB of empty containers":    {Text{Start: Spec + `"containers":[`, Part1: "{},", N1: 2_300_000, End: `{}` + Last}, "bytes as JSON"},
		"3 MB of empty containers":    {Text{Start: Spec + `"containers":[`, Part1: "{},", N1: 1_000_000, End: `{}` + Last}, "spec.containers["},
		"3 MB of empty owners":        {Text{Start: Metadata + `"ownerReferences":[`, Part1: "{},", N1: 1_000_000, End: `{}]}}` + Tail}, "metadata.ownerReferences["},
		"65,000 owners":               {Text{Start: Metadata + `"ownerReferences":[`, Part1: "{},", N1: 65_000, End: `{}]}}` + Tail}, `"patch"`},
		"120,000 variables":           {Text{Start: Spec + `"containers":[{"name":"app","env":[`, Part1: `{"value":"<#>"},`, N1: 110_000, End: `{}]}` + Last}, `"patch"`},
		"3 MB of one argument":        {Text{Start: Spec + `"containers":[{"name":"app","args":["`, Part1: "<", N1: 3_000_000, End: `"]}` + Last}, `"patch"`},
		"3 MB of probe":               {Text{Start: Spec + `"containers":[{"name":"app","ports":[{"name":"http","containerPort":8080}],"livenessProbe":{"httpGet":{"port":"http","path":"`, Part1: "<", N1: 3_000_000, End: `"}}}` + Last}, "bytes of paths, headers"},
		"32 KB of probe":              {Text{Start: Spec + `"containers":[{"name":"app","ports":[{"name":"http","containerPort":8080}],"livenessProbe":{"httpGet":{"port":"http","path":"`, Part1: "<", N1: 32_000, End: `"}}}` + Last}, `"patch"`},
		"3 MB of an owner":            {Text{Start: Metadata + `"ownerReferences":[{"controller":true,"name":"`, Part1: "o", N1: 3_000_000, End: `"}]}}` + Tail}, `"patch"`},
		"3 MB of a port's name":       {Text{Start: Spec + `"containers":[{"name":"app","ports":[{"containerPort":80,"name":"http`, Part1: "p", N1: 3_000_000, End: `"}]}` + Last}, "no HTTP port found"},
		"an old object of 7 MB":       {Text{Start: Head + `"oldObject":{"spec":{"containers":[`, Part1: "{},", N1: 2_300_000, End: `{}` + Last}, "bytes as JSON"},
		"a user of a million groups":  {Text{Start: Head + `"userInfo":{"groups":[`, Part1: `"",`, N1: 2_000_000, End: `""]}` + Tail}, "request.userInfo.groups["},
		"a user of many values":       {Text{Start: Head + `"userInfo":{"extra":{`, Part1: `"#":[],`, N1: 500_000, End: `"":[]}}` + Tail}, "request.userInfo.extra"},
		"7 MB of brackets":            {Text{Start: Head + `"object":`, Part1: "[", N1: 7_000_000}, "not JSON"},
		"an object that is a list":    {Text{Start: Head + `"object":[`, Part1: "{},", N1: 1_000_000, End: `{}]` + Tail}, "not a JSON object"},
		"8 MB":                        {Text{Part1: "[", N1: 9_000_000}, "too long"},
		"YAML":                        {Text{Start: "a: &a [x]\n", Part1: "b#: [*a,*a,*a]\n", N1: 100_000}, "not JSON"},
		"aliases":                     {Text{Start: "[", Part1: "{}, ", N1: 1_000_000, End: "{}]"}, "decode the review"},
		"a body that is not a review": {Text{Start: `{}`}, "not the request of an AdmissionReview"},
	}
	for _, key := range []string{"sidecar-cpu-request", "sidecar-cpu-limit", "sidecar-memory-request", "sidecar-memory-limit"} {
		for _, value := range []string{"1e9999999", "1e-9999999", "1e2147483647", "1e-2147483648", "1E99999999"} {
			c := cases["a long number in an annotation"]
			c.Text = Text{Start: Metadata + `"annotations":{"config.weir.dev/` + key + `":"` + value + `"}},"spec":{"containers":[` + App + Last}
			c.Want = "without a sign or an exponent; the default is used"
			cases[key+" "+value] = c
		}
	}
	return cases
}
