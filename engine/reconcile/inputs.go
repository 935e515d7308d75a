package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
)

// MemoryInputs reads inputs from a cluster in memory. It wakes nobody: that is up to
// whoever steps.
type MemoryInputs struct {
	Cluster *memory.Cluster
}

var _ rollout.Inputs = MemoryInputs{}

// Read implements rollout.Inputs.
func (m MemoryInputs) Read(ctx context.Context, _ types.NamespacedName, in program.Input) (program.Found, error) {
	out := program.Found{Several: in.Object == ""}
	if in.Object != "" {
		u, err := m.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: in.Kind, Namespace: in.Namespace, Name: in.Object})
		if err == nil && u != nil {
			out.Objects = append(out.Objects, u.Object)
		}
		return out, err
	}
	for _, u := range m.Cluster.Select(in.Kind, in.Namespace, in.Selector) {
		out.Objects = append(out.Objects, u.Object)
	}
	return out, nil
}

// Refer implements rollout.Inputs.
func (MemoryInputs) Refer(types.NamespacedName, []program.Input) {}

// Forget implements rollout.Inputs.
func (MemoryInputs) Forget(types.NamespacedName) {}
