package main

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is that of the custom resources.
var groupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// kindWebApp is the kind of WebApps.
const kindWebApp = "WebApp"

// addToScheme registers the custom resources of a kind.
func addToScheme(s *runtime.Scheme, kind string) {
	if kind == kindWebApp {
		s.AddKnownTypes(groupVersion, &WebApp{}, &WebAppList{})
	} else {
		s.AddKnownTypeWithName(groupVersion.WithKind(kind), &Small{})
		s.AddKnownTypeWithName(groupVersion.WithKind(kind+"List"), &SmallList{})
	}
	metav1.AddToGroupVersion(s, groupVersion)
}

// WebApp is a web server with its configuration and a stable address.
type WebApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   WebAppSpec   `json:"spec"`
	Status WebAppStatus `json:"status,omitzero"`
}

// WebAppSpec is what a user asks for. The API server has filled in the defaults.
type WebAppSpec struct {
	Image          string            `json:"image"`
	Replicas       int32             `json:"replicas"`
	Port           int32             `json:"port"`
	Env            map[string]string `json:"env,omitempty"`
	Files          map[string]string `json:"files,omitempty"`
	Secrets        map[string]string `json:"secrets,omitempty"`
	Resources      Resources         `json:"resources"`
	Ingress        Ingress           `json:"ingress"`
	Autoscaling    Autoscaling       `json:"autoscaling"`
	MaxUnavailable int32             `json:"maxUnavailable"`
}

// Resources are what one server is given.
type Resources struct {
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
}

// Ingress is the entrance from outside the cluster.
type Ingress struct {
	Enabled   bool    `json:"enabled"`
	Host      string  `json:"host"`
	Path      string  `json:"path"`
	ClassName *string `json:"className,omitempty"`
}

// Autoscaling lets the load decide how many servers run.
type Autoscaling struct {
	Enabled     bool  `json:"enabled"`
	MinReplicas int32 `json:"minReplicas"`
	MaxReplicas int32 `json:"maxReplicas"`
	TargetCPU   int32 `json:"targetCPU"`
}

// WebAppStatus is what is reported.
type WebAppStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	AvailableReplicas  int32              `json:"availableReplicas"`
	URL                string             `json:"url,omitempty"`
}

// WebAppList is a list of WebApps.
type WebAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []WebApp `json:"items"`
}

// DeepCopy returns a copy that shares nothing.
func (w *WebApp) DeepCopy() *WebApp {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Env, out.Spec.Files, out.Spec.Secrets = maps.Clone(w.Spec.Env), maps.Clone(w.Spec.Files), maps.Clone(w.Spec.Secrets)
	if w.Spec.Ingress.ClassName != nil {
		out.Spec.Ingress.ClassName = new(*w.Spec.Ingress.ClassName)
	}
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (w *WebApp) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *WebAppList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]WebApp, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}
