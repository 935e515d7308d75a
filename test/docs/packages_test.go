package docs

import (
	"strings"
	"testing"

	"operetta.dev/engine/packages"
)

func TestEveryReasonAndFieldOfAPackageIsDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/packages.md").Text
	reasons := constants(t, "packages", "Reason")
	if len(reasons) < 10 {
		t.Fatalf("only %d reasons were found", len(reasons))
	}
	for _, reason := range reasons {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("docs/packages.md does not explain the reason %s", reason)
		}
	}
	for _, definition := range packages.CRDs()[:1] {
		for name := range definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
			if !strings.Contains(page, "spec."+name) {
				t.Errorf("docs/packages.md does not explain spec.%s", name)
			}
		}
	}
}
