package architecture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weir-dev/weir"

// A rule bounds what packages may import. A path names the package and all below
// it; those of this module start with "./".
type rule struct {
	why      string
	packages []string // what the rule is about
	except   []string // what it is not about

	onlyDirect []string // when set, all that the packages may import themselves
	never      []string // what must not be reached, even through others
}

var rules = map[string]rule{
	"the core is pure": {
		why:        "it must be model-checkable and portable to Lua: no clock, context, goroutine, map order or global randomness",
		packages:   []string{"./pkg/limiter"},
		onlyDirect: []string{"cmp", "errors", "fmt", "math", "math/bits", "slices", "strconv"},
	},
	"the core of the engine is pure": {
		why:        "it must be model-checkable: what a process may spend follows from arguments, the time included",
		packages:   []string{"./pkg/twotier/account"},
		onlyDirect: []string{"cmp", "errors", "fmt", "math", "math/bits", "slices", module + "/pkg/limiter", module + "/pkg/sizing"},
	},
	"the cores of pools are pure": {
		why:        "they must be model-checkable and portable to Lua; of the limiter's they know the units of time",
		packages:   []string{"./pkg/concurrency/pool", "./pkg/concurrency/slots", "./pkg/concurrency/adaptive"},
		onlyDirect: []string{"cmp", "errors", "fmt", "maps", "math", "math/bits", "slices", "strconv", "strings", module + "/pkg/limiter"},
	},
	"the cores of budgets are pure": {
		why:        "they must be model-checkable and portable to Lua and SQL",
		packages:   []string{"./pkg/federation/ledger", "./pkg/federation/escrow"},
		except:     []string{"./pkg/federation/escrow/memory", "./pkg/federation/escrow/redis"},
		onlyDirect: []string{"cmp", "errors", "fmt", "math", "math/bits", "slices", "strings", module + "/pkg/limiter", module + "/pkg/federation/ledger"},
	},
	"the core of durable counters is pure": {
		why:        "it is searched together with lost writes and leaders that follow each other",
		packages:   []string{"./pkg/store/journal"},
		onlyDirect: []string{"maps", "math", "slices", module + "/pkg/limiter"},
	},
	"learning is pure": {
		why:        "what is learned is tried in virtual time, and is never trusted",
		packages:   []string{"./pkg/sizing"},
		onlyDirect: []string{"cmp", "math", "slices", module + "/pkg/limiter"},
	},
	"a region sees coordinators and shared escrows only through its own interfaces": {
		why:      "ports stay ports",
		packages: []string{"./pkg/federation"},
		except:   []string{"./pkg/federation/coordinator", "./pkg/federation/escrow"},
		never: []string{
			"./pkg/federation/coordinator", "./pkg/federation/escrow/redis", "./pkg/store/memory", "./pkg/store/redis", "./pkg/store/postgres",
			"./pkg/policy", "./internal", "github.com/redis", "github.com/jackc",
		},
	},
	"coordinators of budgets know the core and nothing above it": {
		why:      "a coordinator applies a command; what a region makes of the answer is the engine's",
		packages: []string{"./pkg/federation/coordinator", "./pkg/federation/escrow"},
		never:    []string{"./pkg/twotier", "./pkg/policy", "./internal", "./controllers", "k8s.io"},
	},
	"sidecars know nothing of other clusters": {
		why:      "a pod holds no credentials of a hub, and asks only its own controller",
		packages: []string{"./internal/sidecar", "./cmd/sidecar"},
		never:    []string{"./internal/controlplane/hub", "./internal/controlplane/region", "./internal/federationpb", "./pkg/federation/coordinator"},
	},
	"the API imports nothing of ours": {
		why:      "everybody imports it",
		packages: []string{"./api"},
		never:    []string{"./pkg", "./internal", "./controllers"},
	},
	"the data plane carries no Kubernetes": {
		why:      "a sidecar has no Kubernetes client and no API rights",
		packages: []string{"./pkg", "./internal/sidecar", "./internal/backend", "./internal/fleetpb", "./cmd/sidecar"},
		never:    []string{"./api", "k8s.io", "sigs.k8s.io"},
	},
	"engines see stores only through their own interface": {
		why:      "ports stay ports",
		packages: []string{"./pkg/twotier"},
		never:    []string{"./pkg/store/memory", "./pkg/store/redis", "./pkg/store/postgres", "./pkg/policy", "./internal", "github.com/redis", "github.com/jackc"},
	},
	"pools' engine sees coordinators only through its own interface": {
		why:      "ports stay ports",
		packages: []string{"./pkg/concurrency"},
		except:   []string{"./pkg/concurrency/coordinator"},
		never: []string{
			"./pkg/concurrency/coordinator", "./pkg/store/memory", "./pkg/store/redis", "./pkg/store/postgres",
			"./pkg/twotier", "./pkg/policy", "./internal", "github.com/redis", "github.com/jackc",
		},
	},
	"coordinators of pools know the core and nothing above it": {
		why:      "a coordinator applies a command; what a holder makes of the answer is the engine's",
		packages: []string{"./pkg/concurrency/coordinator"},
		never:    []string{"./pkg/concurrency/slots", "./pkg/concurrency/adaptive", "./pkg/twotier", "./pkg/policy", "./internal", "./controllers"},
	},
	"stores know the core and nothing above it": {
		why:      "a store applies a command; it does not decide",
		packages: []string{"./pkg/store"},
		except:   []string{"./pkg/store/storetest"},
		never:    []string{"./pkg/twotier", "./pkg/policy", "./internal", "./controllers"},
	},
	"reconcilers hold no store": {
		why:      "controllers gather, decide by pure functions and write once; limiter arithmetic lives elsewhere",
		packages: []string{"./controllers"},
		never:    []string{"./pkg/twotier", "./internal/sidecar", "github.com/redis", "github.com/jackc"},
	},
	"a move between stores is decided by a pure machine": {
		why:      "what may serve when is walked through exhaustively",
		packages: []string{"./internal/controlplane/cutover"},
		never:    []string{"./api", "./pkg/store", "./internal/controlplane/coordinator", "k8s.io", "sigs.k8s.io", "context"},
	},
	"translation, injection and selection are pure": {
		why:      "they are functions of their arguments, tested against golden files",
		packages: []string{"./internal/controlplane/translate", "./internal/controlplane/inject", "./internal/controlplane/selection"},
		never:    []string{"./internal/controlplane/coordinator", "./pkg/twotier", "k8s.io/client-go/kubernetes", "sigs.k8s.io/controller-runtime/pkg/client"},
	},
	"the audit is independent of the grant path": {
		why:      "an auditor that read the store's counters would only echo them",
		packages: []string{"./internal/controlplane/audit", "./internal/sidecar/count"},
		never:    []string{"./pkg/store", "./pkg/twotier", "./internal/controlplane/coordinator"},
	},
	"audits are pure": {
		why:      "what they say is set beside the truth of simulated fleets, in virtual time",
		packages: []string{"./internal/controlplane/audit"},
		onlyDirect: []string{
			"cmp", "iter", "maps", "math", "slices", "time", "unique", "reflect", // which unique.Make needs
			module + "/pkg/limiter", module + "/pkg/federation/ledger", module + "/internal/controlplane/audit", module + "/internal/controlplane/audit/meter",
		},
	},
	"the audit of a limit knows nothing of pools and budgets": {
		why:        "each kind of object is measured by itself",
		packages:   []string{"./internal/controlplane/audit"},
		except:     []string{"./internal/controlplane/audit/budgetaudit", "./internal/controlplane/audit/poolaudit"},
		onlyDirect: []string{"cmp", "iter", "maps", "math", "slices", "time", "unique", "reflect", module + "/pkg/limiter", module + "/internal/controlplane/audit/meter"},
	},
	"the data plane and the control plane meet in the protocol": {
		why:      "each can be read, built and released without the other",
		packages: []string{"./pkg", "./internal/sidecar", "./internal/backend", "./internal/fleetpb", "./cmd/sidecar"},
		never:    []string{"./internal/controlplane", "./controllers", "./cmd/controller"},
	},
	"the plugin of kubectl runs nothing": {
		why:      "it reads a cluster and judges by pure packages; the manager, the fleet's server and stores stay with the controller",
		packages: []string{"./internal/plugin", "./cmd/kubectl-weir"},
		never: []string{
			"./controllers", "./internal/controlplane/coordinator", "./internal/sidecar/proxy", "./internal/sidecar/fleet", "./internal/backend",
			"sigs.k8s.io/controller-runtime/pkg/manager", "github.com/redis", "github.com/jackc",
		},
	},
	"nothing that ships links test code": {
		why:      "test helpers are not reviewed for production",
		packages: []string{"./cmd", "./api", "./controllers", "./internal/sidecar", "./internal/plugin", "./internal/controlplane", "./internal/backend", "./internal/fleetpb", "./internal/federationpb"},
		except:   []string{"./internal/sidecar/proxy/framing/framingtest", "./internal/controlplane/webhook/webhooktest"},
		never: []string{
			"./internal/proof", "./internal/testing", "./pkg/store/storetest", "testing", "github.com/onsi",
		},
	},
}

// TestImportDirections checks every rule against the import graph of the tree.
func TestImportDirections(t *testing.T) {
	graph := load(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			var checked int
			for path, p := range graph {
				if !within(path, r.packages) || within(path, r.except) {
					continue
				}
				checked++
				for _, imp := range p.Imports {
					if r.onlyDirect != nil && !slices.Contains(r.onlyDirect, imp) {
						t.Errorf("%s imports %s\nwhy not: %s", path, imp, r.why)
					}
				}
				for _, dep := range p.Deps {
					if within(dep, r.never) {
						t.Errorf("%s reaches %s\nwhy not: %s", path, dep, r.why)
					}
				}
			}
			if checked == 0 {
				t.Errorf("no package below %v: the rule guards nothing", r.packages)
			}
		})
	}
}

// TestPurePackagesStartNoGoroutines reads the packages whose imports are listed one by one: the
// language itself has goroutines and channels.
func TestPurePackagesStartNoGoroutines(t *testing.T) {
	graph := load(t)
	for name, r := range rules {
		if r.onlyDirect == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for path, p := range graph {
				if !within(path, r.packages) || within(path, r.except) {
					continue
				}
				for _, file := range p.GoFiles {
					for _, at := range concurrency(t, filepath.Join(p.Dir, file)) {
						t.Errorf("%s: %s\nwhy not: %s", path, at, r.why)
					}
				}
			}
		})
	}
}

// concurrency returns where a file starts goroutines or uses channels.
func concurrency(t *testing.T, file string) (places []string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			places = append(places, fmt.Sprintf("a goroutine or channel at %s", files.Position(n.Pos())))
		}
		return true
	})
	return places
}

// within reports whether path is one of the trees or below one.
func within(path string, trees []string) bool {
	if local, ok := strings.CutPrefix(path, module); ok {
		path = "." + local
	}
	return slices.ContainsFunc(trees, func(tree string) bool {
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

type listed struct {
	ImportPath, Dir        string
	GoFiles, Imports, Deps []string
}

func load(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	graph := map[string]listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return graph
		} else if err != nil {
			t.Fatal(err)
		}
		graph[p.ImportPath] = p
	}
}
