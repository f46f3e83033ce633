package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestAProgramIsOfTheModulesListed(t *testing.T) {
	listed := func() []*module {
		return []*module{
			{path: "example.com/a", version: "v1.0.0"},
			{path: "example.com/fork", version: "v1.2.0"},
			{path: "example.com/local", version: "v0.1.0"},
			{path: "example.com/main", version: "v9", main: true},
			{path: standard, version: "go1.26.8"},
		}
	}
	contained := func() *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/main", Version: "(devel)"}, Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a="},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.0", Sum: "h1:fork="}},
			{Path: "example.com/local", Version: "v0.1.0", Replace: &debug.Module{Path: "./local", Version: "(devel)"}},
		}}
	}
	all := listed()
	if err := agree(all, contained()); err != nil {
		t.Fatal(err)
	}
	if all[0].sum != "h1:a=" || all[1].sum != "h1:fork=" || all[2].sum != "" {
		t.Errorf("the sums are %q, %q and %q", all[0].sum, all[1].sum, all[2].sum)
	}
	for want, change := range map[string]func([]*module, *debug.BuildInfo) []*module{
		"the program contains example.com/a v1.0.0, which is not listed": func(m []*module, _ *debug.BuildInfo) []*module { return m[1:] },
		"example.com/a is listed as v1.0.1, and the program contains v1.0.0": func(m []*module, _ *debug.BuildInfo) []*module {
			m[0].version = "v1.0.1"
			return m
		},
		"example.com/fork is listed as v1.2.0, and the program contains v1.3.0": func(m []*module, i *debug.BuildInfo) []*module {
			i.Deps[1].Replace.Version = "v1.3.0"
			return m
		},
		"example.com/local v0.1.0 is listed, and the program does not contain it": func(m []*module, i *debug.BuildInfo) []*module {
			i.Deps = i.Deps[:2]
			return m
		},
		"std is listed as go1.26.8, and the program contains go1.27.0": func(m []*module, i *debug.BuildInfo) []*module {
			i.GoVersion = "go1.27.0"
			return m
		},
		"example.com/main is listed as the main module, and the program's is example.com/other": func(m []*module, i *debug.BuildInfo) []*module {
			i.Main.Path = "example.com/other"
			return m
		},
	} {
		info := contained()
		if err := agree(change(listed(), info), info); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
}
