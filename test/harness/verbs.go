package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience bounds each wait of a test. On an idle machine each takes a second or
// two; the machine may be busy.
const Patience = 90 * time.Second

// Tries is how often something with a limit of seconds may take longer: other tests
// and other programs share the machine.
const Tries = 6

// Site is a namespace with a user who operates it; no two tests share one.
type Site struct {
	T          *testing.T
	Namespace  string
	User       string
	Kubeconfig string
	Operator   *Operator // the last that was started
}

var (
	sites atomic.Int32
	// Unlikely are the characters that do not belong into a name.
	Unlikely = regexp.MustCompile(`[^a-z0-9]+`)
)

// NewSite makes the site of a test.
func NewSite(t *testing.T) *Site {
	t.Helper()
	name := Unlikely.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	namespace := fmt.Sprintf("%.40s-%d", name, sites.Add(1))
	s := &Site{T: t, Namespace: namespace, User: "operetta:" + namespace}
	ns := Object("v1", "Namespace", "", namespace)
	if err := World.Admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.Kubeconfig, err = World.ControlPlane.KubeconfigFor(s.User, "system:masters"); err != nil {
		t.Fatal(err)
	}
	return s
}

// Object returns an object with nothing but its identity.
func Object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// APIVersions are those of the kinds that tests look at.
var APIVersions = map[string]string{
	"ConfigMap": "v1", "Secret": "v1", "ServiceAccount": "v1", "Service": "v1", "Pod": "v1", "PersistentVolumeClaim": "v1",
	"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "Ingress": "networking.k8s.io/v1",
	"HorizontalPodAutoscaler": "autoscaling/v2", "PodDisruptionBudget": "policy/v1",
	"WebApp": "example.com/v1",
}

// Ref returns an object of the site's namespace with nothing but its identity.
func (s *Site) Ref(kind, name string) *unstructured.Unstructured {
	s.T.Helper()
	version, ok := APIVersions[kind]
	if !ok {
		s.T.Fatalf("no API version is known for %s", kind)
	}
	return Object(version, kind, s.Namespace, name)
}

// Webapp returns a WebApp.
func (s *Site) Webapp(name string, spec map[string]any) *unstructured.Unstructured {
	u := s.Ref("WebApp", name)
	u.Object["spec"] = spec
	return u
}

// Create creates an object as the admin.
func (s *Site) Create(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.T.Helper()
	if err := World.Admin.Create(s.T.Context(), u); err != nil {
		s.T.Fatal(err)
	}
	return u
}

// Delete deletes an object as the admin.
func (s *Site) Delete(u *unstructured.Unstructured) {
	s.T.Helper()
	if err := World.Admin.Delete(s.T.Context(), u); err != nil {
		s.T.Fatal(err)
	}
}

// Get reads an object that has to exist.
func (s *Site) Get(kind, name string) *unstructured.Unstructured {
	s.T.Helper()
	u, err := s.Find(kind, name)
	if err != nil {
		s.T.Fatal(err)
	}
	if u == nil {
		s.T.Fatalf("%s %s/%s does not exist", kind, s.Namespace, name)
	}
	return u
}

// Find reads an object, or returns nil when it does not exist.
func (s *Site) Find(kind, name string) (*unstructured.Unstructured, error) {
	s.T.Helper()
	return Read(s.T.Context(), s.Ref(kind, name))
}

// Read returns an object of the API server, or nil when it does not exist.
func Read(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u = u.DeepCopy()
	err := World.Admin.Get(ctx, client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// Patch changes an object by a JSON merge patch as the admin.
func (s *Site) Patch(u *unstructured.Unstructured, patch any) *unstructured.Unstructured {
	s.T.Helper()
	u = u.DeepCopy()
	if err := World.Admin.Patch(s.T.Context(), u, client.RawPatch(types.MergePatchType, Encode(s.T, patch))); err != nil {
		s.T.Fatal(err)
	}
	return u
}

// JSONPatch changes an object by a JSON patch as the admin.
func (s *Site) JSONPatch(u *unstructured.Unstructured, operations ...map[string]any) {
	s.T.Helper()
	if err := World.Admin.Patch(s.T.Context(), u.DeepCopy(), client.RawPatch(types.JSONPatchType, Encode(s.T, operations))); err != nil {
		s.T.Fatal(err)
	}
}

// Spec returns a merge patch of a spec.
func Spec(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

// Annotation returns a merge patch of one annotation.
func Annotation(key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
}

// Encode returns a value as JSON.
func Encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Field returns a field of an object, or nil.
func Field(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// Condition returns a condition of an object as a map, which is empty if there is none.
func Condition(u *unstructured.Unstructured, kind string) map[string]any {
	list, _ := Field(u, "status", "conditions").([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["type"] == kind {
			return m
		}
	}
	return map[string]any{}
}

// Ready returns nil when a custom resource is Ready for its current generation.
func Ready(u *unstructured.Unstructured) error {
	c := Condition(u, "Ready")
	if c["status"] == "True" && c["observedGeneration"] == u.GetGeneration() {
		return nil
	}
	return fmt.Errorf("Ready is %v of generation %v, not of %d: %v: %v", c["status"], c["observedGeneration"], u.GetGeneration(), c["reason"], c["message"])
}

// ExpectReady waits until a WebApp is Ready, and returns it.
func (s *Site) ExpectReady(name string) *unstructured.Unstructured {
	s.T.Helper()
	return s.ExpectAllReady(s.Ref("WebApp", name))
}

// ExpectAllReady waits until a custom resource is Ready. All else that its status
// says has to agree with that (D5).
func (s *Site) ExpectAllReady(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.T.Helper()
	u = s.ExpectThat(u, "to be Ready", Ready)
	for _, kind := range []string{"Reconciling", "Stalled"} {
		if c := Condition(u, kind); c["status"] != "False" || c["observedGeneration"] != u.GetGeneration() || c["message"] != "" {
			s.T.Errorf("D5: %s is Ready and %s is %v", u.GetName(), kind, c)
		}
	}
	if Field(u, "status", "phase") != "Ready" || Field(u, "status", "observedGeneration") != u.GetGeneration() {
		s.T.Errorf("D5: %s is Ready, its phase %v and its observedGeneration %v", u.GetName(), Field(u, "status", "phase"), Field(u, "status", "observedGeneration"))
	}
	return u
}

// ExpectNotReady waits for a Ready condition that is not true for a reason, and
// whose message has all parts. It returns the message.
func (s *Site) ExpectNotReady(u *unstructured.Unstructured, reason string, parts ...string) string {
	s.T.Helper()
	u = s.ExpectThat(u, "not to be Ready because of "+reason, func(u *unstructured.Unstructured) error {
		c := Condition(u, "Ready")
		message, _ := c["message"].(string)
		if c["status"] == "False" && c["reason"] == reason && c["observedGeneration"] == u.GetGeneration() && ContainsAll(message, parts) {
			return nil
		}
		return fmt.Errorf("Ready is %v: %v: %v; wanted %s with %q", c["status"], c["reason"], c["message"], reason, parts)
	})
	message, _ := Condition(u, "Ready")["message"].(string)
	return message
}

// ExpectThat waits until an object exists and passes a check, and returns it.
func (s *Site) ExpectThat(u *unstructured.Unstructured, what string, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	s.T.Helper()
	var got *unstructured.Unstructured
	Eventually(s.T, fmt.Sprintf("%s %s %s", u.GetKind(), u.GetName(), what), func() (err error) {
		got, err = Read(s.T.Context(), u)
		if err == nil && got == nil {
			err = fmt.Errorf("it does not exist")
		}
		if err == nil {
			err = check(got)
		}
		return err
	})
	return got
}

// ExpectGone waits until an object does not exist.
func (s *Site) ExpectGone(u *unstructured.Unstructured) {
	s.T.Helper()
	Eventually(s.T, fmt.Sprintf("the end of %s %s", u.GetKind(), u.GetName()), func() error {
		got, err := Read(s.T.Context(), u)
		if err == nil && got != nil {
			err = fmt.Errorf("it exists, finalizers %v, deleted at %v, status %s", got.GetFinalizers(), got.GetDeletionTimestamp(), Encode(s.T, got.Object["status"]))
		}
		return err
	})
}

// ExpectEvent waits for an Event about an object, and returns its note.
func (s *Site) ExpectEvent(about, reason string, parts ...string) string {
	s.T.Helper()
	var found string
	Eventually(s.T, fmt.Sprintf("event %s about %s with %q", reason, about, parts), func() error {
		var seen []string
		for _, e := range s.List("events.k8s.io/v1", "Event") {
			note, _ := e.Object["note"].(string)
			if Field(&e, "regarding", "name") != about {
				continue
			}
			if e.Object["reason"] == reason && ContainsAll(note, parts) {
				found = note
				return nil
			}
			seen = append(seen, fmt.Sprintf("%v: %s", e.Object["reason"], note))
		}
		return fmt.Errorf("there are only %q", seen)
	})
	return found
}

// ListEverywhere returns the objects of a kind in all namespaces.
func ListEverywhere(t *testing.T, apiVersion, kind string) []unstructured.Unstructured {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	if err := World.Admin.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// List returns the objects of a kind in the site's namespace.
func (s *Site) List(apiVersion, kind string) []unstructured.Unstructured {
	s.T.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	if err := World.Admin.List(s.T.Context(), l, client.InNamespace(s.Namespace)); err != nil {
		s.T.Fatal(err)
	}
	return l.Items
}

// Eventually polls until check is nil, and fails the test after patience.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	Within(t, Patience, what, check)
}

// Between two polls there is a tenth of the time that was waited so far, within these limits: the
// polls of tests that run side by side must not keep the API server busy.
const (
	shortestPause = 40 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// Within polls until check is nil, for a limited time, and returns how long it took.
func Within(t *testing.T, limit time.Duration, what string, check func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(min(max(time.Since(began)/10, shortestPause), longestPause)):
		}
	}
}

// Since returns how long ago a time is, as it is logged.
func Since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// Kubectl runs kubectl as the admin and returns its output.
func Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, World.ControlPlane.Kubectl(), append([]string{"--kubeconfig=" + World.ControlPlane.Kubeconfig()}, args...)...)
	// kubectl caches discovery in the home folder.
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(World.Operetta))
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w%s", strings.Join(args, " "), err, StderrOf(err))
	}
	return strings.TrimSpace(string(out)), err
}

// Kubectl runs kubectl on the site's namespace; it has to succeed.
func (s *Site) Kubectl(args ...string) string {
	s.T.Helper()
	out, err := Kubectl(s.T.Context(), append([]string{"--namespace=" + s.Namespace}, args...)...)
	if err != nil {
		s.T.Fatal(err)
	}
	return out
}

// ErrNotYet is the error of a check that has nothing better to say.
var ErrNotYet = errors.New("not yet")

// ListFrom returns the options of a watch that begins at a version.
func ListFrom(resourceVersion string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: resourceVersion}
}

// Component returns what a WebApp's status says about a component.
func Component(cr *unstructured.Unstructured, name string) map[string]any {
	list, _ := Field(cr, "status", "components").([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["name"] == name {
			return m
		}
	}
	return map[string]any{}
}

// Exists is the check of an object that has to be there and no more.
func Exists(*unstructured.Unstructured) error { return nil }
