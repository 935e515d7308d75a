package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/controller"
)

// webhookFlags are the settings of the webhooks that `operetta run` serves.
type webhookFlags struct {
	secret, service string
}

func (f *webhookFlags) addFlags(cmd *cobra.Command, o *controller.Options) {
	flags := cmd.Flags()
	flags.StringVar(&o.WebhookAddress, "webhook-bind-address", "", "address for admission webhooks over TLS, such as :9443; off by default")
	flags.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "", "folder with tls.crt and tls.key for the webhooks, such as that of cert-manager; by default the operator makes a certificate")
	flags.StringVar(&f.secret, "webhook-secret", "", "namespace/name of the Secret in which the operator keeps the certificates that it makes; it has to exist")
	flags.StringVar(&f.service, "webhook-service", "", "namespace/name of the Service by which the API server calls the webhooks; by default it calls the address")
	flags.StringVar(&o.WebhookCertificates.Configuration, "webhook-configuration", "", "name of the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration in which the operator writes whom to trust")
	flags.DurationVar(&o.WebhookCertificates.Lifetime, "webhook-cert-lifetime", controller.DefaultCertificateLifetime, "how long a certificate is valid that the operator makes; it is replaced when a third of that is left")
}

// check completes the options of the manager. It errors if the flags contradict each other.
func (f *webhookFlags) check(o *controller.Options) error {
	c := &o.WebhookCertificates
	var err error
	if c.Secret, err = namespacedName("--webhook-secret", f.secret); err != nil {
		return err
	}
	if c.Service, err = namespacedName("--webhook-service", f.service); err != nil {
		return err
	}
	switch serves, makes := o.WebhookAddress != "", f.secret != ""; {
	case !serves && (makes || o.WebhookCertDir != ""):
		return usageError{errors.New("webhooks are served with --webhook-bind-address")}
	case serves && makes == (o.WebhookCertDir != ""):
		return usageError{errors.New("webhooks need a certificate: give either --webhook-cert-dir or --webhook-secret")}
	case c.Lifetime <= 0:
		return usageError{errors.New("--webhook-cert-lifetime is greater than 0")}
	}
	return nil
}

// namespacedName reads the value of a flag, which may be "".
func namespacedName(flag, text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, usageError{fmt.Errorf("%s: write namespace/name", flag)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
