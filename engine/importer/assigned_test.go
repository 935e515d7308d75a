package importer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/importer"
)

// TestWhatAnAPIServerAssignedToAServiceIsToldApart imports Services as kubectl reads them, with what of the spec is in the
// package and what the notes say.
func TestWhatAnAPIServerAssignedToAServiceIsToldApart(t *testing.T) {
	t.Parallel()
	const read = "uid: x, resourceVersion: '7'"
	const left = "in.yaml:1: Service a: left out "
	for name, c := range map[string]struct {
		reason, metadata, spec string
		notes, has, hasNot     []string
	}{
		"an address": {
			"another Service cannot have it", read, "clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]",
			[]string{left + "metadata.resourceVersion, metadata.uid, spec.clusterIP, spec.clusterIPs, which a cluster maintains"}, []string{"ports"}, []string{"clusterIP"},
		},
		"no address": {
			"somebody chose it", read, "clusterIP: None, clusterIPs: [None], ports: [{port: 80}]",
			[]string{left + "metadata.resourceVersion, metadata.uid, which a cluster maintains"}, []string{`clusterIP: "None"`, `clusterIPs: ["None"]`}, nil,
		},
		"an address in a manifest": {"no cluster has assigned it", "", "type: NodePort, clusterIP: 10.96.0.10, ports: [{port: 80, nodePort: 30080}]", nil, []string{`clusterIP: "10.96.0.10"`, "nodePort: 30080"}, nil},
		"an address that was applied": {
			"kubectl has kept who chose it", read + `, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"clusterIP":"10.0.0.1"}}'}`, "clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]",
			[]string{left + "kubectl.kubernetes.io/last-applied-configuration, metadata.resourceVersion, metadata.uid, which a cluster maintains"}, []string{`clusterIP: "10.0.0.1"`, "clusterIPs"}, nil,
		},
		"a port on the nodes": {
			"people may use it", read, "type: NodePort, healthCheckNodePort: 30081, ports: [{port: 80, nodePort: 30080}]",
			[]string{
				"in.yaml:1: Service a: spec.ports[0].nodePort stays 30080, which the cluster may have assigned: remove it if nobody chose it, so that there can be another resource",
				left + "metadata.resourceVersion, metadata.uid, spec.healthCheckNodePort, which a cluster maintains",
			}, []string{"nodePort: 30080"}, []string{"healthCheck"},
		},
		"a port that was applied": {
			"there is nothing to ask", read + `, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"ports":[{"port":80,"nodePort":30080}]}}'}`, "type: NodePort, ports: [{port: 80, nodePort: 30080}]",
			[]string{left + "kubectl.kubernetes.io/last-applied-configuration, metadata.resourceVersion, metadata.uid, which a cluster maintains"}, []string{"nodePort: 30080"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "apiVersion: v1\nkind: Service\nmetadata: {name: a, " + c.metadata + "}\nspec: {" + c.spec + "}\n"
			result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("shop")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.notes, result.Notes); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", c.reason, diff)
			}
			made := strings.Join(strings.Fields(fileOf(t, result, "more.cue")), " ")
			for _, want := range c.has {
				if !strings.Contains(made, want) {
					t.Errorf("%s: %q is not in %s", c.reason, want, made)
				}
			}
			for _, not := range c.hasNot {
				if strings.Contains(made, not) {
					t.Errorf("%s: %q is in %s", c.reason, not, made)
				}
			}
		})
	}
}
