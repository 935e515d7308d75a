package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
)

func TestStampKeepsSecretsWhereTheAPIServerDoes(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason         string
		kind           string
		data, text     any
		wantData, want any
	}{
		"plain text alone": {
			"it is encoded, so that its fields are owned", "Secret",
			nil, map[string]any{"a": "text", "empty": ""},
			map[string]any{"a": "dGV4dA==", "empty": ""}, nil,
		},
		"beside data": {
			"plain text wins, as on the API server", "Secret",
			map[string]any{"a": "b2xk", "b": "Yg=="}, map[string]any{"a": "text"},
			map[string]any{"a": "dGV4dA==", "b": "Yg=="}, nil,
		},
		"another type": {
			"the API server says what is wrong", "Secret",
			nil, map[string]any{"a": int64(7)},
			nil, map[string]any{"a": int64(7)},
		},
		"another kind": {
			"its stringData is its own", "ConfigMap",
			nil, map[string]any{"a": "text"},
			nil, map[string]any{"a": "text"},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := rendered(program.Policy{})
			o.Manifest["kind"] = row.kind
			delete(o.Manifest, "data")
			if row.data != nil {
				o.Manifest["data"] = row.data
			}
			o.Manifest["stringData"] = row.text
			got := stamp(t, o).Manifest.Object
			if diff := cmp.Diff([]any{row.wantData, row.want}, []any{got["data"], got["stringData"]}); diff != "" {
				t.Errorf("%s: data and stringData (-want +got):\n%s", row.reason, diff)
			}
			if o.Manifest["stringData"] == nil {
				t.Error("the rendering was changed; it may be shared")
			}
		})
	}
}
