package controller

import (
	"context"
	"fmt"
	"net"
	"strconv"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	webhookadmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// PatchesPath is where an API server asks whether a Patch may be written.
const PatchesPath = "/validate-patches"

// serveWebhooks serves admission webhooks, if there is an address for them. Registering
// them with the API server is up to whoever installs.
func serveWebhooks(mgr manager.Manager, o Options) error {
	if o.WebhookAddress == "" {
		return nil
	}
	host, text, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil {
		return fmt.Errorf("the address of the webhooks: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("the address of the webhooks: %s has no port", o.WebhookAddress)
	}
	// The manager's client reads from caches, and a review is an answer and no object.
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("creating the client: %w", err)
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: int(port), CertDir: o.WebhookCertDir})
	server.Register(PatchesPath, &webhook.Admission{Handler: patchHandler(mgr.GetRESTMapper(), direct)})
	return mgr.Add(server)
}

// patchHandler judges Patches by what the API server says.
func patchHandler(mapper meta.RESTMapper, direct client.Client) webhookadmission.Handler {
	judge := admission.Patches{
		Resource: func(_ context.Context, kind schema.GroupKind) (schema.GroupResource, error) {
			m, err := mapper.RESTMapping(kind)
			if err != nil {
				return schema.GroupResource{}, err
			}
			return m.Resource.GroupResource(), nil
		},
		Allowed: func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: spec}
			err := direct.Create(ctx, review)
			return review.Status.Allowed, err
		},
	}
	return webhookadmission.HandlerFunc(func(ctx context.Context, r webhookadmission.Request) webhookadmission.Response {
		return webhookadmission.Response{AdmissionResponse: *judge.Review(ctx, &r.AdmissionRequest)}
	})
}
