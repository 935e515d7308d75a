package clustertest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster/memory"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// siteLabel is the label of the namespaces of tests, which selects them for the webhook.
const siteLabel = "operetta.dev/site"

// webhook is an admission webhook with a check for each namespace.
type webhook struct {
	mu       sync.Mutex
	refusals map[string]memory.Admission // by namespace
}

// newWebhook starts a webhook, and waits until the API server calls it.
func newWebhook(ctx context.Context, admin client.Client) (*webhook, error) {
	w := &webhook{refusals: map[string]memory.Admission{}}
	server := httptest.NewUnstartedServer(w)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that are cut at the end are no errors
	server.StartTLS()
	config := object(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}, "", "sites")
	config.Object["webhooks"] = []any{map[string]any{
		"name": "sites.operetta.dev", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Fail",
		"clientConfig": map[string]any{
			"url":      server.URL,
			"caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{siteLabel: "yes"}},
		"rules": []any{map[string]any{
			"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "operations": []any{"CREATE", "UPDATE", "DELETE"}, "scope": "Namespaced",
		}},
	}}
	if err := admin.Create(ctx, config); err != nil {
		return nil, fmt.Errorf("registering the webhook: %w", err)
	}
	return w, w.waitUntilCalled(ctx, admin)
}

// waitUntilCalled waits until the API server calls the webhook.
func (w *webhook) waitUntilCalled(ctx context.Context, admin client.Client) error {
	const name = "asked"
	ns := object(namespaceKind, "", name)
	ns.SetLabels(map[string]string{siteLabel: "yes"})
	if err := admin.Create(ctx, ns); err != nil {
		return err
	}
	no := errors.New("no")
	w.refuse(name, func(_, _ *unstructured.Unstructured) error {
		return apierrors.NewForbidden(schema.GroupResource{}, name, no)
	})
	return eventually(ctx, "the webhook to be asked", func() error {
		err := admin.Create(ctx, object(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, name, name), client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("a ConfigMap was created: %w", err)
	})
}

// refuse sets the check of a namespace; nil allows everything.
func (w *webhook) refuse(namespace string, r memory.Admission) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals[namespace] = r
}

// ServeHTTP implements http.Handler.
func (w *webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(out, fmt.Sprint("no review: ", err), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if err := w.admit(review.Request); err != nil {
		review.Response.Allowed = false
		status := apierrors.NewInternalError(err).ErrStatus
		if known := apierrors.APIStatus(nil); errors.As(err, &known) {
			status = known.Status()
		}
		review.Response.Result = &status
	}
	review.Request = nil
	_ = json.NewEncoder(out).Encode(review) // an error means that the API server has closed the connection
}

func (w *webhook) admit(r *admissionv1.AdmissionRequest) error {
	w.mu.Lock()
	refusal := w.refusals[r.Namespace]
	w.mu.Unlock()
	if refusal == nil {
		return nil
	}
	before, err := decode(r.OldObject)
	if err != nil {
		return err
	}
	after, err := decode(r.Object)
	if err != nil {
		return err
	}
	return refusal(before, after)
}

// decode returns an object of a review, or nil.
func decode(raw runtime.RawExtension) (*unstructured.Unstructured, error) {
	if len(raw.Raw) == 0 {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(raw.Raw)
}
