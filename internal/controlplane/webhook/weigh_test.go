package webhook

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestEveryQuantityOfAPodIsFound: a pod with a value in every field is encoded, and each of its
// quantities is made a costly one in turn.
func TestEveryQuantityOfAPodIsFound(t *testing.T) {
	const mark = "1e771"
	pod := &corev1.Pod{}
	fill(reflect.ValueOf(pod).Elem(), resource.MustParse(mark))
	text := string(encode(t, pod))
	if _, err := weigh([]byte(text), podShape, maxObjectMemory); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(text, `"`+mark+`"`)
	if len(parts) < 30 {
		t.Fatalf("a pod has %d places for quantities, want those of its containers, volumes and status", len(parts)-1)
	}
	for i := 1; i < len(parts); i++ {
		for _, costly := range []string{`"1e-9999999"`, `1e-9999999`, `1E2147483647`, `" 1e-9999 "`, `"` + strings.Repeat("9", maxQuantity+1) + `"`} {
			hostile := strings.Join(parts[:i], `"`+mark+`"`) + costly + strings.Join(parts[i:], `"`+mark+`"`)
			_, err := weigh([]byte(hostile), podShape, maxObjectMemory)
			if excess, ok := errors.AsType[*excessError](err); !ok || !strings.Contains(excess.reason, "quantity") {
				t.Fatalf("%s behind %.300s: %v, want it refused", costly, parts[i-1][max(0, len(parts[i-1])-100):], err)
			}
		}
	}
}

// fill sets every field, with one element in each list and map.
func fill(v reflect.Value, q resource.Quantity) {
	switch {
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(q))
	case reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.Unmarshaler]()):
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), q)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), q)
	case v.Kind() == reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem, q)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), elem)
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, q)
		}
	}
}

// TestNothingButQuantitiesIsRefused: the same texts elsewhere are an honest pod's.
func TestNothingButQuantitiesIsRefused(t *testing.T) {
	const text = `{"metadata":{"name":"1e99999","annotations":{"1e99999":"1e-9999999","sha":"12345e67890"},"labels":{"limits":"1e99999"}},
		"limits":{"cpu":"1e99999"},"spec":{"requests":1e99999,"containers":[{"args":["1e99999","\"1e99999"],"env":[{"name":"limits","value":"1e99999"}],
		"resources":{"limits":{"cpu":"1e3","memory":"12E","x":"1.5Gi","y":"-1e+3","z":9223372036854775807}}}]}}`
	if _, err := weigh([]byte(text), podShape, maxObjectMemory); err != nil {
		t.Error(err)
	}
}

func TestExcessesSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"containers":[{},{"resources":{"limits":{"cpu":"1e-9999999"}}}]}}`:             "spec.containers[1].resources.limits.cpu: a quantity has up to",
		`{"sp\u0065c":{"overhead":{"cpu":1e9999999}}}`:                                           "spec.overhead.cpu: a quantity has up to",
		`{"spec":{"containers":[` + strings.Repeat("{},", 20_000) + `{}]}}`:                      "spec.containers[",
		`{"metadata":{"labels":{` + strings.Repeat(`"a":"",`, 200_000) + `"b":""}}}`:             "metadata.labels.a: with the lists before it",
		`{"spec":{"containers":[{"env":[` + strings.Repeat(`{"name":"x"},`, 200_000) + `{}]}]}}`: "spec.containers[0].env[",
	} {
		if _, err := weigh([]byte(text), podShape, maxObjectMemory); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: %v, want an error that begins with %s", text, err, want)
		}
	}
}

func TestWeight(t *testing.T) {
	const container, probe = int(unsafe.Sizeof(corev1.Container{})), int(unsafe.Sizeof(corev1.Probe{}))
	for text, want := range map[string]int{
		`{}`: 0, ` { "spec" : { "nodeName" : "a" } } `: 0,
		`{"spec":{"containers":[{},{}]}}`:                                2 * container,
		`{"spec":{"containers":[{"livenessProbe":{}}, null ]}}`:          2*container + probe,
		`{"spec":{"future":[{},{}],"containers":"x"},"containers":[{}]}`: 0,
	} {
		if got, err := weigh([]byte(text), podShape, maxObjectMemory); got != want || err != nil {
			t.Errorf("%s weighs %d (%v), want %d", text, got, err, want)
		}
	}
}

func TestWhatIsNotJSONWeighsNothing(t *testing.T) {
	for _, text := range []string{
		"", "{", `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, "[", "[1", "[,", "{}{}", `"\`, `{"\q":1}`, "}", ",",
		strings.Repeat("[", maxNesting+2), strings.Repeat(`{"a":`, maxNesting+2),
	} {
		if _, err := weigh([]byte(text), podShape, maxObjectMemory); !errors.Is(err, errMalformed) {
			t.Errorf("%.20q: %v, want %v", text, err, errMalformed)
		}
	}
}
