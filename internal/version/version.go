package version

import "runtime/debug"

// built is set by the linker where images are made (hack/image): they are built without
// the state of the version control system, so that one commit has one digest.
var built string

// String returns the version that the program was linked with, else that of its module
// as the go command recorded it, which is "(devel)" in a checkout without history.
func String() string {
	if built != "" {
		return built
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
