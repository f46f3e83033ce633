package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/config/crd"
)

// A check of the arguments of a program returns what is wrong with them.
type check func(args []string) string

// TestCommands looks for the make targets, resources, chart values and files that commands of
// the pages name. The tests of the plugin check those of kubectl weir.
func TestCommands(t *testing.T) {
	checks := map[string]check{"make": checkMake(t), "kubectl": checkKubectl(t), "helm": checkHelm(t)}
	found := map[string]int{}
	for _, p := range pages(t) {
		if p.Path == "CHANGELOG.md" {
			continue // is about other versions, too
		}
		for _, c := range p.Commands() {
			found[c.Words[0]]++
			if checked := checks[c.Words[0]]; checked != nil {
				if wrong := checked(c.Words[1:]); wrong != "" {
					t.Errorf("%s: %s: %s", p.At(c.Line), strings.Join(c.Words, " "), wrong)
				}
			}
		}
	}
	if found["make"] < 50 || found["kubectl"] < 50 || found["helm"] < 5 {
		t.Errorf("the pages have the commands %v", found)
	}
}

var (
	target  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	setting = regexp.MustCompile(`\b[A-Z][A-Z0-9_]+\b`)
)

func checkMake(t *testing.T) check {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "hack", "make", "*.mk"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of make: %v", len(files), err)
	}
	known := map[string]bool{"DEMO_SCENE": true}
	for _, file := range append(files, filepath.Join(root, "Makefile")) {
		text := string(read(t, file))
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			known[m[1]] = true
		}
		for _, name := range setting.FindAllString(text, -1) {
			known[name] = true
		}
	}
	return func(args []string) string {
		for _, arg := range args {
			if name, _, _ := strings.Cut(arg, "="); !known[name] && !strings.HasPrefix(name, "-") {
				return "make has no target or variable " + name
			}
		}
		return ""
	}
}

// builtIn are the resources of Kubernetes that the pages name.
var builtIn = strings.Fields("all pod pods deploy deployment deployments service services namespace namespaces secret secrets configmap configmaps " +
	"events lease node nodes crd role rolebinding clusterrole networkpolicy serviceaccount validatingadmissionpolicy endpointslices " +
	"mutatingwebhookconfiguration mutatingwebhookconfigurations validatingwebhookconfiguration validatingwebhookconfigurations")

func checkKubectl(t *testing.T) check {
	t.Helper()
	resources := map[string]bool{"fleetlimits": true}
	for _, name := range builtIn {
		resources[name] = true
	}
	for _, definition := range definitions(t) {
		names := definition.Spec.Names
		for _, name := range append(names.ShortNames, names.Plural, names.Singular) {
			resources[name] = true
			resources[name+"."+definition.Spec.Group] = true
		}
		resources[definition.Name] = true // kubectl delete crd NAME
	}
	named := strings.Fields("get describe patch delete wait annotate label scale edit explain port-forward exec logs")
	return func(args []string) string {
		words := positional(args)
		if len(words) == 0 {
			return ""
		}
		for i, arg := range args {
			if (arg == "-f" || arg == "-k" || arg == "--filename") && i+1 < len(args) {
				if wrong := checkFile(args[i+1]); wrong != "" {
					return wrong
				}
			}
		}
		if words[0] == "rollout" && len(words) > 2 {
			words = words[1:]
		} else if !slices.Contains(named, words[0]) || len(words) < 2 {
			return ""
		}
		for kind := range strings.SplitSeq(words[1], ",") {
			kind, name, one := strings.Cut(kind, "/")
			path := kind
			if words[0] == "explain" {
				path, _, _ = strings.Cut(strings.Replace(kind, ".weir.dev", "", 1), ".")
			}
			podName := name == "" && !one && slices.Contains([]string{"port-forward", "exec", "logs"}, words[0])
			if !resources[path] && !podName {
				return "there is no resource " + path
			}
		}
		return ""
	}
}

// checkFile looks for a file of the repository. Others are the reader's.
func checkFile(name string) string {
	first, _, below := strings.Cut(name, "/")
	if !below || !slices.Contains([]string{"config", "charts", "docs", "hack", "test"}, first) {
		return ""
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
		return "there is no file " + name
	}
	return ""
}

// valued are the flags of kubectl and helm whose value is the next word.
var valued = strings.Fields("-n --namespace -f --filename -k -l --selector -o --output -p --patch --type --patch-file --for --timeout --context " +
	"--cluster --kubeconfig --version --set --set-string --values --clusterrole --role --user --serviceaccount --verb --resource --resource-name -c --container")

// positional returns the words that are neither flags nor their values.
func positional(args []string) (words []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(valued, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			words = append(words, args[i])
		}
	}
	return words
}

func checkHelm(t *testing.T) check {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal(read(t, filepath.Join(root, "charts", "weir", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	return func(args []string) string {
		for i, arg := range args {
			if (arg != "--set" && arg != "--set-string") || i+1 == len(args) {
				continue
			}
			for pair := range strings.SplitSeq(args[i+1], ",") {
				key, _, _ := strings.Cut(pair, "=")
				var at any = values
				for part := range strings.SplitSeq(key, ".") {
					inside, _ := at.(map[string]any)
					value, ok := inside[part]
					if !ok {
						return "the chart has no value " + key
					}
					at = value
				}
			}
		}
		return ""
	}
}

func definitions(t *testing.T) (all []apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, plural := range []string{"ratelimitpolicies", "concurrencypools", "federatedbudgets"} {
		text, err := crd.Bases.ReadFile("bases/weir.dev_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		all = append(all, definition)
	}
	return all
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestChecks(t *testing.T) {
	for line, want := range map[string]string{
		"make demo VERSION=v1":                            "",
		"make demoo":                                      "make has no target or variable demoo",
		"make demo NO_SUCH=1":                             "make has no target or variable NO_SUCH",
		"kubectl -n shop get rlp,cpool -w":                "",
		"kubectl explain ratelimitpolicies.weir.dev.spec": "",
		"kubectl explain ratelimit.spec":                  "there is no resource ratelimit",
		"kubectl rollout restart deploymen/x":             "there is no resource deploymen",
		"kubectl apply -f config/samples/nothing.yaml":    "there is no file config/samples/nothing.yaml",
		"helm install weir charts/weir --set hub.type=x":  "the chart has no value hub.type",
	} {
		checks := map[string]check{"make": checkMake(t), "kubectl": checkKubectl(t), "helm": checkHelm(t)}
		words := strings.Fields(line)
		if got := checks[words[0]](words[1:]); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestPageHasCommands(t *testing.T) {
	p := Page{Text: strings.Join([]string{
		"Run `kubectl get pods | grep x` or `make`.", "```sh", "A=1 make x   # says y", "helm install \\", "  --set 'a=b c'", "kubectl apply -f - <<'EOF'", "make no", "EOF",
		"export K=$(kubectl config view)", "```", "```yaml", "make: no", "```", "```", "$ kubectl weir status", "NAME", "```",
	}, "\n")}
	want := []Command{
		{[]string{"make", "x"}, 3},
		{[]string{"helm", "install", "--set", "a=b c"}, 4},
		{[]string{"kubectl", "apply", "-f", "-"}, 6},
		{[]string{"kubectl", "config", "view"}, 9},
		{[]string{"kubectl", "weir", "status"}, 15},
		{[]string{"kubectl", "get", "pods"}, 1},
	}
	if diff := cmp.Diff(want, p.Commands()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
