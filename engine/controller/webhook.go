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

// PatchesPath is the path of the webhook for Patches.
const PatchesPath = "/validate-patches"

// serveWebhooks serves the admission webhooks, unless their address is "". Whoever installs the operator
// registers them with the API server. The direct client creates access reviews, which no cache has.
func serveWebhooks(mgr manager.Manager, direct client.Client, o Options) error {
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
	server := webhook.NewServer(webhook.Options{Host: host, Port: int(port), CertDir: o.WebhookCertDir})
	server.Register(PatchesPath, &webhook.Admission{Handler: patchHandler(mgr.GetRESTMapper(), direct)})
	return mgr.Add(server)
}

// patchHandler returns the handler that admits Patches by the rights of their users.
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
