package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/internal/dashboard"
)

// The picture is drawn from what an operator has answered, which takes minutes; that it shows the dashboard of config/grafana is what can
// be compared.
func TestThePictureOfTheDashboardShowsItsPanels(t *testing.T) {
	d, err := dashboard.Read(filepath.Join(root, "config", "grafana", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(filepath.Join(root, "docs", "dashboard.svg"))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := dashboard.Panels(picture)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Shown(), shown); diff != "" {
		t.Errorf("docs/dashboard.svg shows another dashboard; run go test ./test/e2e -run F42W52 -args -update (-dashboard +picture):\n%s", diff)
	}
}
