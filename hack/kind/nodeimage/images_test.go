package nodeimage

import "testing"

const list = `example.org/kube-apiserver:v1.36.3
example.org/kube-controller-manager:v1.36.3
example.org/kube-scheduler:v1.36.3
example.org/kube-proxy:v1.36.3
example.org:5000/coredns/coredns:v1.14.2
example.org/pause:3.10.2
example.org/etcd:3.6.8-0
`

func TestParseImages(t *testing.T) {
	images, err := parseImages(list)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := images["coredns"], (image{"example.org:5000/coredns/coredns", "v1.14.2"}); got != want {
		t.Errorf("coredns: %v, want %v", got, want)
	}
	if got := images["etcd"].name(); got != "example.org/etcd:3.6.8-0" {
		t.Errorf("etcd: %s", got)
	}
}

func TestParseImagesRefuses(t *testing.T) {
	for name, list := range map[string]string{
		"a missing component": "example.org/kube-apiserver:v1.36.3\n",
		"a missing tag":       "kube-apiserver\n",
	} {
		if images, err := parseImages(list); err == nil {
			t.Errorf("%s: parsed as %v", name, images)
		}
	}
}
