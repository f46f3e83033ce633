package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheckSite(t *testing.T) {
	site := fstest.MapFS{
		"index.html": {Data: []byte(`<a href="/v1/a.html#one">x</a><a href="https://example.com/">x</a><img src="/v1/i.svg"><a href="#top" id="top">x</a>`)},
		"a.html":     {Data: []byte(`<h1 id="one">One</h1><a href="d/b.html">x</a><a href="/v1/">x</a><a href="./#top">x</a>`)},
		"d/b.html":   {Data: []byte(`<a href="../a.html#two">x</a><a href="../">x</a><a href="gone.html">x</a><a href="/a.html">x</a><script src="/v1/gone.js"></script>`)},
		"i.svg":      {Data: []byte(`<svg/>`)},
		"404.html":   {Data: []byte(`<a href="/v1/">x</a>`)},
		"assets/chunks/@localSearchIndexroot.0.js": {Data: []byte("const e=`{\"documentIds\":{\"0\":\"/v1/a.html#one\",\"1\":\"/v1/a.html#gone\",\"2\":\"/v1/#top\"}}`")},
	}
	got, err := checkSite(site, "/v1/")
	want := []string{
		"d/b.html: ../a.html#two: there is no such heading",
		"d/b.html: /a.html: it is not below /v1/",
		"d/b.html: /v1/gone.js: there is no such file",
		"d/b.html: gone.html: there is no such file",
		"d/b.html: no search finds it",
		"search: /v1/a.html#gone: there is no such heading",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, problems (-want +got):\n%s", err, diff)
	}
	if _, err := checkSite(fstest.MapFS{}, "/"); err == nil {
		t.Error("a site without a page passed")
	}
	site["assets/chunks/@localSearchIndexroot.0.js"] = &fstest.MapFile{Data: []byte("const e={}")}
	if _, err := checkSite(site, "/v1/"); err == nil {
		t.Error("an index that cannot be read passed")
	}
}
