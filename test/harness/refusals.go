package harness

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/test/controlplane"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusals see that the operators of a test lack no permission, also where they cope without it: the audit log has no request that no role
// allows, and neither a log, an event nor a condition says that one is missing.
type refusals struct {
	t    *testing.T
	from controlplane.AuditMark

	mu        sync.Mutex
	users     []string
	operators []*Operator
	expected  []expectedRefusal
}

// An expectedRefusal is a request that an operator may not send, or what it says of it, by parts of its text.
type expectedRefusal struct {
	reason string
	parts  []string
}

func newRefusals(t *testing.T) *refusals {
	t.Helper()
	r := &refusals{t: t}
	if info, err := os.Stat(Suite.ControlPlane.AuditLog()); err == nil { // no user of the test has sent anything yet
		r.from = controlplane.AuditMark(info.Size())
	}
	return r
}

// watch adds a user to those who must not be refused anything.
func (r *refusals) watch(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.users, user) {
		r.users = append(r.users, user)
	}
}

// read adds an operator to those whose logs must not say that a permission is missing.
func (r *refusals) read(o *Operator) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operators = append(r.operators, o)
}

// ExpectRefusals lets the operators of a test be refused requests whose text has all parts, as in "list", "secrets". The reason says why
// the roles that operetta rbac prints do not allow them.
func (s *Env) ExpectRefusals(reason string, parts ...string) {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	s.refusals.expected = append(s.refusals.expected, expectedRefusal{reason, parts})
}

// missingPermission matches what says that a permission is missing, in the words of the API server or of the operator.
var missingPermission = regexp.MustCompile(`cannot [a-z]+ resource|is attempting to grant RBAC permissions|[Tt]he operator may not `)

// check fails the test for each refusal that it did not expect. The operators have ended.
func (r *refusals) check(s *Env) {
	r.t.Helper()
	if len(r.operators) == 0 {
		return
	}
	for text, n := range s.Refusals() {
		if !r.isExpected(text) {
			r.t.Errorf("a permission is missing (%d times): %s", n, text)
		}
	}
}

// Refusals returns what says that the operators of a test lack a permission, and how often.
func (s *Env) Refusals() map[string]int {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout) // the context of the test may have ended
	defer cancel()
	r, found := s.refusals, map[string]int{}
	events, err := Suite.ControlPlane.AuditEvents(ctx, r.from, r.users...)
	if err != nil {
		s.T.Errorf("looking for refusals: %v", err)
	}
	for _, e := range events {
		if (e.Forbidden || missingPermission.MatchString(e.Message)) && !s.roles.isProbe(e) {
			found[fmt.Sprintf("the API server has refused: %s %s: %s", e.Verb, e.RequestURI, e.Message)]++
		}
	}
	for _, o := range r.operators {
		for line := range strings.Lines(o.Log.Text()) {
			if missingPermission.MatchString(line) && r.isAbout(line) && !s.roles.saysProbe(line) {
				found["the log says: "+strings.TrimSpace(line)]++
			}
		}
	}
	for _, text := range s.said(ctx) {
		if missingPermission.MatchString(text) && r.isAbout(text) {
			found[text]++
		}
	}
	return found
}

// isAbout reports whether a text is about the operators of the test, and not about an account as whom one acts.
func (r *refusals) isAbout(text string) bool {
	return !strings.Contains(text, "User ") || slices.ContainsFunc(r.users, func(user string) bool {
		return strings.Contains(text, user+`"`) || strings.Contains(text, user+`\"`)
	})
}

// isExpected reports whether a test expects a refusal.
func (r *refusals) isExpected(text string) bool {
	return slices.ContainsFunc(r.expected, func(e expectedRefusal) bool { return ContainsAll(text, e.parts) })
}

// said returns what events and conditions of custom resources in the namespace of the test say.
func (s *Env) said(ctx context.Context) []string {
	var out []string
	list := func(apiVersion, kind string, of func(*unstructured.Unstructured)) {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion(apiVersion)
		l.SetKind(kind + "List")
		if err := Suite.Admin.List(ctx, l, client.InNamespace(s.Namespace)); err != nil {
			return // the definition is gone
		}
		for i := range l.Items {
			of(&l.Items[i])
		}
	}
	list("events.k8s.io/v1", "Event", func(u *unstructured.Unstructured) {
		out = append(out, fmt.Sprintf("an event says: %v: %v", u.Object["reason"], u.Object["note"]))
	})
	for kind := range s.roles.kinds {
		mapping, err := Suite.Admin.RESTMapper().RESTMapping(kind)
		if err != nil {
			continue
		}
		list(mapping.GroupVersionKind.GroupVersion().String(), kind.Kind, func(u *unstructured.Unstructured) {
			conditions, _ := Field(u, "status", "conditions").([]any)
			for _, c := range conditions {
				out = append(out, fmt.Sprintf("a condition of %s %s says: %v", u.GetKind(), u.GetName(), c))
			}
		})
	}
	return out
}

// isProbe reports whether a request may be refused by its design. An operator that starts looks once for resources of packages that it does
// not serve, those of other tests among them, and acts as their accounts for that. An operator of some namespaces that looks for what is left
// of a kind asks for all namespaces first. One that has lost a status looks for the objects of a resource among all kinds, as far as it may.
func (r *roles) isProbe(e controlplane.AuditEvent) bool {
	known := r.used[schema.GroupResource{Group: e.Group, Resource: e.Resource}]
	switch {
	case strings.HasPrefix(e.As, "system:serviceaccount:"), strings.HasPrefix(e.Verb, "impersonate"):
		return true // who acts as an account has rights of the test's own
	case e.Verb == "list":
		return e.Namespace == "" && !r.everywhere || !known && (isOfTests(e.Group) || strings.Contains(e.RequestURI, "labelSelector=operetta.dev%2Fowner"))
	case e.Verb == "watch":
		return !known && isOfTests(e.Group)
	}
	return false
}

// isOfTests reports whether a group is that of a package of a test.
func isOfTests(group string) bool { return strings.HasSuffix(group, "example.com") }

// saysProbe reports whether a line of a log is about such a request.
func (r *roles) saysProbe(line string) bool {
	if strings.Contains(line, "cannot impersonate") {
		return true
	}
	return strings.Contains(line, "resources without their package are not looked at") &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(r.kinds)), func(kind schema.GroupKind) bool { return strings.Contains(line, kind.String()) })
}
