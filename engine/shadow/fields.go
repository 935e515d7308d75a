package shadow

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/ownership"
)

// maxFields is how many fields of one object are listed.
const maxFields = 100

// differences returns the fields of a rendered object that the live one has otherwise, and how many more there
// are. It errors if the object cannot be one of its kind.
func differences(mask *diff.Mask, live, rendered *unstructured.Unstructured) ([]Field, int, error) {
	s := diff.States{Wanted: diff.WithoutOwnership(rendered), Managers: ownership.ManagersOf(live)}
	applied, err := memory.Applied(live, s.Wanted)
	if err == nil {
		s.Applied, err = cluster.Canonical(applied)
	}
	if err == nil {
		s.Live, err = cluster.Canonical(live)
	}
	if err != nil {
		return nil, 0, err
	}
	all := mask.Rendered(s)
	var out []Field
	for _, d := range all[:min(len(all), maxFields)] {
		f := Field{Path: d.Path, Live: d.Before, Wanted: d.After}
		for _, m := range d.Managers {
			f.Managers = append(f.Managers, mask.Text(m))
		}
		out = append(out, f)
	}
	return out, len(all) - len(out), nil
}
