package main

import "testing"

func TestFunctionsAreCounted(t *testing.T) {
	idle := read("github.com/weir-dev/weir/pkg/a/x.go:1:\t\tf\t\t100.0%\n")
	got := read(`github.com/weir-dev/weir/pkg/a/x.go:1:		f			100.0%
github.com/weir-dev/weir/pkg/a/x.go:9:		Key[go.shape.int].g	50.0%
github.com/weir-dev/weir/pkg/a/x.go:20:		never			0.0%
github.com/weir-dev/weir/pkg/b/y.go:3:		h			0.1%
github.com/weir-dev/weir/hack/ways/main.go:3:	main			80.0%
total			(statements)	1.0%
`)
	if packages, files, all := got.count(); packages != 2 || files != 2 || all != 3 {
		t.Errorf("%d packages, %d files and %d functions, want 2, 2 and 3", packages, files, all)
	}
	if packages, files, all := got.without(idle).count(); packages != 2 || files != 2 || all != 2 {
		t.Errorf("but for the idle: %d packages, %d files and %d functions, want 2, 2 and 2", packages, files, all)
	}
}
