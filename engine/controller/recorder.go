package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
)

// recorder records events on the API server.
type recorder struct{ events events.EventRecorder }

var _ reconcile.Recorder = recorder{}

// eventsReporter is who records events.
const eventsReporter = "operetta"

// Record implements reconcile.Recorder.
func (r recorder) Record(resource *unstructured.Unstructured, e rollout.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.events.Eventf(resource, nil, kind, e.Reason, "Reconcile", "%s", e.Message)
}
