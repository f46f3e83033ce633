package rbac_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// grant is one rule of a component's account, and where it holds.
type grant struct {
	role      string // and name of the account
	namespace string // empty: everywhere
	rbacv1.PolicyRule
}

// String is the grant on one line, as the golden file has it.
func (g grant) String() string {
	where := g.role + " everywhere"
	if g.namespace != "" {
		where = g.role + " in " + g.namespace
	}
	var names string
	if len(g.ResourceNames) > 0 {
		names = " named " + strings.Join(g.ResourceNames, ",")
	}
	if len(g.NonResourceURLs) > 0 {
		return fmt.Sprintf("%s: %s %s", where, strings.Join(g.Verbs, ","), strings.Join(g.NonResourceURLs, ","))
	}
	groups := make([]string, len(g.APIGroups))
	for i, group := range g.APIGroups {
		groups[i] = cmp.Or(group, "core")
	}
	return fmt.Sprintf("%s: %s %s of %s%s", where, strings.Join(g.Verbs, ","), strings.Join(g.Resources, ","), strings.Join(groups, ","), names)
}

// grants reads the roles that the components' accounts are bound to.
func grants(t *testing.T) []grant {
	t.Helper()
	return grantsOf(t, "role.yaml")
}

// grantsOf reads the roles of a file.
func grantsOf(t *testing.T, file string) []grant {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var grants []grant
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var role rbacv1.Role // a ClusterRole has the same shape without a namespace
		if err := yaml.UnmarshalStrict(document, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			grants = append(grants, grant{role.Name, role.Namespace, rule})
		}
	}
	return grants
}

// TestGolden shows a change of the components' rights in review, one line a rule.
func TestGolden(t *testing.T) {
	var lines []string
	for _, g := range grants(t) {
		lines = append(lines, g.String())
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "components.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("rights of the components (-want +got); review them, then run go test ./config/rbac -update\n%s", diff)
	}
}

// ofUsers are the kinds that the controller reconciles.
var ofUsers = []string{"concurrencypools", "federatedbudgets", "ratelimitpolicies"}

func TestLeastPrivilege(t *testing.T) {
	writing := sets.New("create", "update", "patch", "delete", "deletecollection")
	for _, g := range grants(t) {
		t.Run(g.String(), func(t *testing.T) {
			if slices.Contains(slices.Concat(g.APIGroups, g.Resources, g.Verbs), "*") {
				t.Error("a wildcard grants what nobody reviewed")
			}
			if verbs := sets.New(g.Verbs...); verbs.HasAny("escalate", "bind", "impersonate") {
				t.Error("the controller could give itself any right")
			}
			everywhere := g.namespace == ""
			for _, resource := range g.Resources {
				switch {
				case everywhere && (resource == "secrets" || resource == "configmaps"):
					t.Errorf("the controller may read %s of other namespaces", resource)
				case everywhere && resource == "pods" && sets.New(g.Verbs...).HasAny(writing.UnsortedList()...):
					t.Error("only the webhook changes pods, and only before they exist")
				case strings.HasSuffix(resource, "webhookconfigurations") && len(g.ResourceNames) == 0:
					t.Errorf("%s must be limited to the controller's own by name", resource)
				case slices.Contains(ofUsers, resource) && sets.New(g.Verbs...).HasAny(writing.UnsortedList()...):
					t.Errorf("%s belong to users; the controller writes their status only", resource)
				case resource == "secrets" && sets.New(g.Verbs...).HasAny("watch", "patch", "deletecollection"):
					t.Error("the controller lists the Secrets of members, deletes one of them at a time, and watches none")
				}
			}
		})
	}
}

// TestNothingLastsOutsideItsNamespace is why deleting the namespace removes all that the
// controller ever made: elsewhere it creates what is not kept, or expires.
func TestNothingLastsOutsideItsNamespace(t *testing.T) {
	passing := sets.New("tokenreviews", "events")
	for _, g := range grants(t) {
		if g.namespace == "" && slices.Contains(g.Verbs, "create") && !passing.HasAll(g.Resources...) {
			t.Errorf("%s: what it creates outlives an uninstallation", g)
		}
	}
}

// TestSecretsAreWrittenByName: what users bind for the controller lets it read the Secrets
// of a namespace, and rewrite only the one that a member of a budget has.
func TestSecretsAreWrittenByName(t *testing.T) {
	for _, g := range grantsOf(t, "policy_roles.yaml") {
		if !slices.Contains(g.Resources, "secrets") {
			continue
		}
		allowed := sets.New("get")
		if slices.Equal(g.ResourceNames, []string{"weir-hub"}) {
			allowed.Insert("update")
		}
		if !allowed.HasAll(g.Verbs...) {
			t.Errorf("%s: at most %v", g, sets.List(allowed))
		}
	}
}

// TestBuiltInRoles: what every editor of some namespace may write acts on pods of that
// namespace alone, and a budget does not.
func TestBuiltInRoles(t *testing.T) {
	data, err := os.ReadFile("policy_roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{} // verbs of kinds, by the built-in role
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(document, &role); err != nil {
			t.Fatal(err)
		}
		for label := range role.Labels {
			into := strings.TrimPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					got[into] = append(got[into], strings.Join(rule.Verbs, ",")+" "+resource)
				}
			}
		}
	}
	for _, all := range got {
		slices.Sort(all)
	}
	const read, write = "get,list,watch ", "create,delete,deletecollection,get,list,patch,update,watch "
	want := map[string][]string{
		"view":  {read + "concurrencypools", read + "federatedbudgets", read + "ratelimitpolicies"},
		"edit":  {write + "concurrencypools", write + "ratelimitpolicies"},
		"admin": {write + "concurrencypools", write + "ratelimitpolicies", "reset ratelimitpolicies"},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("rights of the built-in roles (-want +got):\n%s", diff)
	}
}

// TestEveryRoleIsBoundToTheAccountOfItsName: and to no other.
func TestEveryRoleIsBoundToTheAccountOfItsName(t *testing.T) {
	data, err := os.ReadFile("role_binding.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bound := sets.New[string]()
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var b rbacv1.RoleBinding // a ClusterRoleBinding has the same shape without a namespace
		if err := yaml.UnmarshalStrict(document, &b); err != nil {
			t.Fatal(err)
		}
		if len(b.Subjects) != 1 || b.Subjects[0] != (rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: b.RoleRef.Name, Namespace: "weir-system"}) {
			t.Errorf("%s %s is bound to %v", b.RoleRef.Kind, b.RoleRef.Name, b.Subjects)
		}
		bound.Insert(b.RoleRef.Kind + " " + b.RoleRef.Name)
	}
	for _, g := range grants(t) {
		kind := "Role"
		if g.namespace == "" {
			kind = "ClusterRole"
		}
		if !bound.Has(kind + " " + g.role) {
			t.Errorf("%s %s is not bound", kind, g.role)
		}
	}
}

// TestWebhooksHaveFewRights: everybody's objects reach them, so they read one Secret, which
// is their own, and write nothing but Events.
func TestWebhooksHaveFewRights(t *testing.T) {
	for _, g := range grants(t) {
		if g.role != "weir-webhook" {
			continue
		}
		for _, resource := range g.Resources {
			switch {
			case resource == "secrets" && (!slices.Equal(g.Verbs, []string{"get"}) || !slices.Equal(g.ResourceNames, []string{"weir-certificates"})):
				t.Errorf("%s: they need no Secret but their certificate", g)
			case resource != "events" && sets.New(g.Verbs...).HasAny("create", "update", "patch", "delete", "deletecollection"):
				t.Errorf("%s: they write Events alone", g)
			case slices.Contains([]string{"pods", "leases", "configmaps"}, resource):
				t.Errorf("%s: that is for the controller", g)
			}
		}
	}
}
