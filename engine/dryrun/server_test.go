package dryrun

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/dryrun/diff"
)

func TestADryRunHidesTheSecretsThatItReads(t *testing.T) {
	t.Parallel()
	ref := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: "default", Name: "own"}
	for name, read := range map[string]func(cluster.Cluster) (*unstructured.Unstructured, error){
		"from a cache":        func(c cluster.Cluster) (*unstructured.Unstructured, error) { return c.GetCached(t.Context(), ref) },
		"from the API server": func(c cluster.Cluster) (*unstructured.Unstructured, error) { return c.GetLive(t.Context(), ref) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory, mask := memory.New(), &diff.Mask{}
			r := &cluster.ServerDryRun{Cluster: learning{memory, mask}}
			if u, err := read(r); u != nil || err != nil {
				t.Fatalf("before it is there, it is %v (error %v)", u, err)
			}
			_, err := memory.Put("person", &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "own"},
				"stringData": map[string]any{"k": "opensesame"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := read(r); err != nil {
				t.Fatal(err)
			}
			if got := mask.Text("is opensesame"); got != "is ***" {
				t.Errorf("it shows %q", got)
			}
		})
	}
}
