package cluster_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
)

// What the API server says about a Secret may quote it. The permission that the operator lacks is said all the same.
func TestAPermissionForASecretIsNamedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "secrets"}
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("password"))
	ref := func(version, kind string) cluster.Ref {
		return cluster.Ref{GroupVersionKind: schema.FromAPIVersionAndKind(version, kind), Namespace: "here", Name: "x"}
	}
	for name, row := range map[string]struct {
		reason string
		ref    cluster.Ref
		doing  string
		err    error
		want   string
	}{
		"a read":                  {"only a permission forbids that", ref("v1", "Secret"), "reading", forbidden, `Secret here/x: reading: Forbidden: cannot get resource "secrets"`},
		"an apply":                {"a policy may forbid that, too", ref("v1", "Secret"), "applying", forbidden, `cannot create or patch resource "secrets", or a policy denies it (the message is withheld`},
		"a deletion":              {"a policy may forbid that, too", ref("v1", "Secret"), "deleting", forbidden, `cannot delete resource "secrets", or a policy denies it (the message is withheld`},
		"another error":           {"it is about the content", ref("v1", "Secret"), "applying", apierrors.NewBadRequest("password"), "Secret here/x: applying: BadRequest (the message is withheld"},
		"a Secret of a group":     {"its resource has another name", ref("example.org/v1", "Secret"), "reading", forbidden, "reading: Forbidden (the message is withheld"},
		"an object without kind":  {"it may be a Secret", ref("v1", ""), "reading", forbidden, "reading: Forbidden (the message is withheld"},
		"an object of other kind": {"it is no Secret", ref("v1", "ConfigMap"), "reading", forbidden, "password"},
	} {
		got := cluster.WrapError(row.ref, row.doing, row.err)
		if !strings.Contains(got.Error(), row.want) || row.ref.Kind != "ConfigMap" && strings.Contains(got.Error(), "password") {
			t.Errorf("%s: %s: %s", name, row.reason, got)
		}
		if apierrors.ReasonForError(got) != apierrors.ReasonForError(row.err) {
			t.Errorf("%s: %s: the reason is %s", name, row.reason, apierrors.ReasonForError(got))
		}
	}
}
