package attack

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fourBody is a package with four objects, one after the other.
const fourBody = `
#Spec: text: string | *"hello"

components: {
	a: objects: map: _map & {metadata: name: "\(cr.metadata.name)-a"}
	b: {dependsOn: a: {}, objects: map: _map & {metadata: name: "\(cr.metadata.name)-b"}}
	c: {dependsOn: b: {}, objects: map: _map & {metadata: name: "\(cr.metadata.name)-c"}}
	d: {dependsOn: c: {}, objects: map: _map & {metadata: name: "\(cr.metadata.name)-d"}}
}
_map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: string, data: text: cr.spec.text}
`

// hangingWebhook makes writes of ConfigMaps in the namespace of a test, and in more, hang for as long as an API server waits at most,
// and then fail. It returns how many of them have hung.
func hangingWebhook(s *harness.Env, more ...any) *atomic.Int64 {
	s.T.Helper()
	var held atomic.Int64
	ended := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		held.Add(1)
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	s.T.Cleanup(server.Close)
	s.T.Cleanup(func() { close(ended) })
	config := harness.Object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", s.Namespace+"-hangs")
	config.Object["webhooks"] = []any{map[string]any{
		"name": "hangs.example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": int64(30),
		"clientConfig": map[string]any{"url": server.URL, "caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
		"namespaceSelector": map[string]any{"matchExpressions": []any{
			map[string]any{"key": "kubernetes.io/metadata.name", "operator": "In", "values": append([]any{s.Namespace}, more...)},
		}},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE", "UPDATE"}}},
	}}
	s.Create(config)
	s.T.Cleanup(func() { harness.RemoveForGood(s.T, config) })
	harness.Eventually(s.T, "the webhook to hang", func() error {
		ctx, cancel := context.WithTimeout(s.T.Context(), time.Second)
		defer cancel()
		err := harness.Suite.Admin.Create(ctx, s.ConfigMap("held", nil), client.DryRunAll)
		if held.Load() == 0 {
			return errors.Join(errors.New("nothing was held"), err)
		}
		return nil
	})
	held.Store(0)
	return &held
}

// TestAttackAWebhookThatHangsForANamespaceHoldsUpNoOther: what admission waits for is not what an evaluation costs, and
// resources that were quick run into it. Twenty of them took all workers of their kind, for 30 s and more each.
func TestAttackAWebhookThatHangsForANamespaceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "heldup", fourBody)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	far := s.OtherNamespace()
	mallory, bob := s.Tenant("mallory", s.Namespace, things(p)), s.Tenant("bob", far, things(p))
	var hers []*unstructured.Unstructured
	for i := range 20 {
		hers = append(hers, mallory.Create(p.Thing(s, fmt.Sprint("shop-", i), nil)))
	}
	for _, cr := range hers {
		s.ExpectResourceReady(cr)
	}
	held := hangingWebhook(s)
	for _, cr := range hers {
		if err := mallory.Patch(cr, harness.Spec(map[string]any{"text": "changed"})); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, "her resources to hang", func() error {
		if n := held.Load(); n < 3 {
			return fmt.Errorf("%d hang", n)
		}
		return nil
	})
	for i := range 5 {
		cr := p.Thing(s, fmt.Sprint("his-", i), nil)
		cr.SetNamespace(far)
		began := time.Now()
		s.ExpectResourceReady(bob.Create(cr))
		took := time.Since(began)
		t.Logf("resource %d of bob is Ready after %s; %d of mallory's writes have hung", i, harness.Elapsed(began), held.Load())
		if took > machine.Limit(10*time.Second) {
			t.Errorf("resource %d of bob is Ready after %s", i, took)
		}
	}
}

// TestAttackWebhooksThatHangForSixNamespacesHoldUpNoOther: nobody knows of any of them when they begin, at once. They took all places for
// reconciles, also those for long ones, for the 30 s of the webhooks.
func TestAttackWebhooksThatHangForSixNamespacesHoldUpNoOther(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "sixhang", fourBody)
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	far := s.OtherNamespace()
	bob := s.Tenant("bob", far, things(p))
	s.ExpectResourceReady(bob.Create(inNamespace(p.Thing(s, "first", nil), far))) // the kind is served
	namespaces := []any{s.Namespace}
	for i := range 5 {
		name := fmt.Sprint(s.Namespace, "-more-", i)
		s.Create(harness.Object("v1", "Namespace", "", name))
		namespaces = append(namespaces, name)
	}
	held := hangingWebhook(s, namespaces...)
	for i, namespace := range namespaces {
		name, _ := namespace.(string)
		mallory := s.Tenant(fmt.Sprint("mallory-", i), name, things(p))
		for j := range 20 {
			mallory.Create(inNamespace(p.Thing(s, fmt.Sprint("shop-", j), nil), name))
		}
	}
	for i := range 3 {
		began := time.Now()
		s.ExpectResourceReady(bob.Create(inNamespace(p.Thing(s, fmt.Sprint("his-", i), nil), far)))
		took := time.Since(began)
		t.Logf("resource %d of bob is Ready after %s; %d of mallory's writes have hung", i, harness.Elapsed(began), held.Load())
		if took > machine.Limit(15*time.Second) {
			t.Errorf("resource %d of bob is Ready after %s", i, took)
		}
	}
}
