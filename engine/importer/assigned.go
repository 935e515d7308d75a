package importer

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Service that was read from a cluster has what the API server assigned to it beside what somebody chose. Another one
// cannot have the same address in the cluster, so addresses are left out. A port on the nodes may have been told to people,
// so it stays, with a note.

// addressesOf are the fields of a Service that the API server assigns.
var addressesOf = []string{"clusterIP", "clusterIPs", "healthCheckNodePort"}

// isAssigned reports whether an object is a Service that was read from a cluster.
func (o *object) isAssigned() bool {
	return o.groupKind() == "Service" && (o.GetUID() != "" || o.GetResourceVersion() != "")
}

// chosen returns the spec that somebody applied, as far as kubectl has kept it.
func (o *object) chosen() map[string]any {
	var applied map[string]any
	if json.Unmarshal([]byte(o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &applied) != nil {
		return nil
	}
	spec, _ := applied["spec"].(map[string]any)
	return spec
}

// removeAddresses removes what the API server has assigned and nobody else can have, and returns the paths. A Service
// without an address of its own, None, is one that somebody chose.
func (o *object) removeAddresses() []string {
	ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP")
	if !o.isAssigned() || ip == corev1.ClusterIPNone {
		return nil
	}
	chosen := o.chosen()
	var out []string
	for _, field := range addressesOf {
		_, has, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", field)
		_, own := chosen[field]
		if field == "clusterIPs" { // it repeats clusterIP
			_, ownIP := chosen["clusterIP"]
			own = own || ownIP
		}
		if has && !own {
			unstructured.RemoveNestedField(o.Object, "spec", field)
			out = append(out, "spec."+field)
		}
	}
	return out
}

// portNotes say which ports on the nodes stay that a cluster may have assigned.
func (o *object) portNotes() []string {
	if !o.isAssigned() {
		return nil
	}
	ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
	before, _ := o.chosen()["ports"].([]any)
	var out []string
	for i, p := range ports {
		port, _ := p.(map[string]any)
		if port["nodePort"] == nil || isChosen(port, before) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: spec.ports[%d].nodePort stays %v, which the cluster may have assigned: remove it if nobody chose it, so that there can be another resource", o, i, port["nodePort"]))
	}
	return out
}

// isChosen reports whether one of the ports that somebody applied has the same port on the nodes.
func isChosen(port map[string]any, applied []any) bool {
	for _, a := range applied {
		own, _ := a.(map[string]any)
		if own["nodePort"] != nil && fmt.Sprint(own["nodePort"]) == fmt.Sprint(port["nodePort"]) {
			return true
		}
	}
	return false
}
