package podrunner

import "testing"

func TestExpand(t *testing.T) {
	values := map[string]string{"NAME": "checkout", "EMPTY": ""}
	for name, tc := range map[string]struct{ in, want string }{
		"a variable is replaced":                   {"--pod=$(NAME)", "--pod=checkout"},
		"every variable is replaced":               {"$(NAME)/$(NAME)", "checkout/checkout"},
		"an empty variable leaves nothing":         {"<$(EMPTY)>", "<>"},
		"an unknown variable stays as it is":       {"$(OTHER)", "$(OTHER)"},
		"two dollar signs are one":                 {"$$(NAME)", "$(NAME)"},
		"a dollar sign without parenthesis stays":  {"$NAME costs $5", "$NAME costs $5"},
		"an open parenthesis stays":                {"$(NAME", "$(NAME"},
		"a dollar sign at the end stays":           {"NAME$", "NAME$"},
		"a value is not looked through once again": {"$(NAME)$$(NAME)", "checkout$(NAME)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expand(tc.in, values); got != tc.want {
				t.Errorf("expand(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}
