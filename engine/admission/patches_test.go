package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/admission"
)

func TestAPatchTakesTheRightOfItsAuthor(t *testing.T) {
	t.Parallel()
	const (
		deployment = `{"address":"web.deployment","apiVersion":"apps/v1","kind":"Deployment","strategicMerge":{}}`
		secret     = `{"address":"web.secret","apiVersion":"v1","kind":"Secret","strategicMerge":{}}`
		unsaid     = `{"address":"web.other","strategicMerge":{}}`
		gadget     = `{"address":"web.gadget","apiVersion":"example.com/v1","kind":"Gadget","strategicMerge":{}}`
	)
	of := func(changes ...string) string {
		return `{"apiVersion":"operetta.dev/v1alpha1","kind":"Patch","spec":{"patches":[` + strings.Join(changes, ",") + `]}}`
	}
	for name, tc := range map[string]struct {
		operation     admissionv1.Operation
		before, after string
		code          int32
		says          string
		asked         []string
		cannotBeAsked bool
	}{
		"a right that its author has":    {operation: admissionv1.Create, after: of(deployment), asked: []string{"apps/deployments"}},
		"each kind once":                 {operation: admissionv1.Create, after: of(deployment, strings.Replace(deployment, "web.deployment", "web.more", 1)), asked: []string{"apps/deployments"}},
		"one of two":                     {operation: admissionv1.Create, after: of(deployment, secret), code: 403, says: "update secrets in namespace shop", asked: []string{"apps/deployments", "/secrets"}},
		"a kind that is not said":        {operation: admissionv1.Create, after: of(unsaid), code: 403, says: "web.other"},
		"a kind that nobody knows":       {operation: admissionv1.Create, after: of(gadget), code: 403, says: "Gadget.example.com"},
		"an edit of the spec":            {operation: admissionv1.Update, before: of(deployment), after: of(secret), code: 403, says: "secrets", asked: []string{"/secrets"}},
		"an edit of something else":      {operation: admissionv1.Update, before: of(secret), after: of(secret)},
		"a deletion":                     {operation: admissionv1.Delete, before: of(secret)},
		"nobody answers":                 {operation: admissionv1.Create, after: of(deployment), code: 500, says: "no answer", cannotBeAsked: true, asked: []string{"apps/deployments"}},
		"what cannot be read is refused": {operation: admissionv1.Create, after: `{"kind":"Patch","spec":{"patches":7}}`, code: 403, says: "cannot be read"},
		"what is no object":              {operation: admissionv1.Create, after: `7`, code: 500, says: "reading"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			p := admission.Patches{
				Resource: func(_ context.Context, kind schema.GroupKind) (schema.GroupResource, error) {
					if kind.Group == "example.com" {
						return schema.GroupResource{}, &meta.NoKindMatchError{GroupKind: kind}
					}
					return schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind) + "s"}, nil
				},
				Allowed: func(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
					a := spec.ResourceAttributes
					asked = append(asked, a.Group+"/"+a.Resource)
					if spec.User != "alice" || spec.UID != "7" || len(spec.Groups) != 1 || len(spec.Extra["scopes"]) != 1 || a.Verb != "update" || a.Namespace != "shop" {
						t.Errorf("asked about %+v", spec)
					}
					if tc.cannotBeAsked {
						return false, errors.New("no answer")
					}
					return a.Resource == "deployments", nil
				},
			}
			got, err := p.Review(t.Context(), &admissionv1.AdmissionRequest{
				UID: "1", Operation: tc.operation, Namespace: "shop",
				UserInfo: authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}}},
				Object:   raw(tc.after), OldObject: raw(tc.before),
			})
			if err != nil || got.Allowed != (tc.code == 0) || got.UID != "1" {
				t.Fatalf("answered %+v, error %v", got, err)
			}
			if tc.code != 0 && (got.Result.Code != tc.code || !strings.Contains(got.Result.Message, tc.says)) {
				t.Errorf("answered %d: %s", got.Result.Code, got.Result.Message)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func raw(text string) runtime.RawExtension {
	if text == "" {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: json.RawMessage(text)}
}
