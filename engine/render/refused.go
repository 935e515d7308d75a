package render

import (
	"maps"
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

// refused returns what contradicts the types of Kubernetes in objects whose turn has not come: the API server will
// refuse them. As in vet, only values that are literal in the text are judged, because others may change with what the
// component waits for. Objects whose turn has come were judged by the cluster in memory. It errors if the types cannot be
// read.
func (v *view) refused(d reconcile.Preview) (fault.Faults, error) {
	waits := map[string]bool{}
	for _, c := range d.Components {
		waits[c.Name] = c.State == status.Waiting && c.Reason != status.ReasonKindNotServed
	}
	if !slices.Contains(slices.Collect(maps.Values(waits)), true) {
		return nil, nil
	}
	p := v.evaluates.Program
	complete, err := p.Snapshot().Complete()
	if err != nil {
		return nil, err
	}
	found := p.Shown(p.TypeFaults(program.NewKinds(complete), &v.evaluates.last)...)
	return redacted(d, slices.DeleteFunc(found, func(f fault.Fault) bool {
		names := fault.SplitPath(f.Path)
		return len(names) < 2 || names[0] != "components" || !waits[names[1]]
	})), nil
}
