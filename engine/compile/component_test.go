package compile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
)

func TestAwaitedByNeedsNoPaths(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason    string
		component program.Component
		want      []awaited
	}{
		"nothing":     {"it waits for nothing", program.Component{}, []awaited{}},
		"with a path": {"as an evaluation says it", program.Component{Missing: []string{"a.b: gone"}, MissingAt: []string{"a.b"}}, []awaited{{"a.b: gone", "a.b"}}},
		"no path":     {"it was made up, by a message alone", program.Component{Missing: []string{"gone"}}, []awaited{{"gone", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, awaitedBy(&row.component), cmp.AllowUnexported(awaited{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
