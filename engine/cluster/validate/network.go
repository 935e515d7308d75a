package validate

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func service(o *corev1.Service) field.ErrorList {
	s := &o.Spec
	kind := s.Type
	if kind == "" {
		kind = corev1.ServiceTypeClusterIP
	}
	var out field.ErrorList
	headless := s.ClusterIP == corev1.ClusterIPNone
	if len(s.Ports) == 0 && !headless && kind != corev1.ServiceTypeExternalName {
		out = append(out, field.Required(spec.Child("ports"), ""))
	}
	out = append(out, servicePorts(s.Ports, kind)...)
	out = append(out, metavalidation.ValidateLabels(s.Selector, spec.Child("selector"))...)
	if kind == corev1.ServiceTypeExternalName {
		name := strings.TrimSuffix(s.ExternalName, ".")
		if name == "" {
			out = append(out, field.Required(spec.Child("externalName"), ""))
		}
		out = append(out, optionalName(spec.Child("externalName"), name, validation.IsDNS1123Subdomain)...)
		if s.ClusterIP != "" {
			out = append(out, field.Forbidden(spec.Child("clusterIP"), "may not be set when `type` is 'ExternalName'"))
		}
		return out
	}
	if s.ClusterIP != "" && !headless {
		out = append(out, address(spec.Child("clusterIP"), s.ClusterIP)...)
	}
	if headless && kind != corev1.ServiceTypeClusterIP {
		out = append(out, field.Invalid(spec.Child("clusterIPs").Index(0), s.ClusterIP, fmt.Sprintf("may not be set to 'None' for %s services", kind)))
	}
	for i, ip := range s.ExternalIPs {
		out = append(out, address(spec.Child("externalIPs").Index(i), ip)...)
	}
	for i, r := range s.LoadBalancerSourceRanges {
		out = append(out, cidr(spec.Child("loadBalancerSourceRanges").Index(i), strings.TrimSpace(r))...)
	}
	if s.ExternalTrafficPolicy != "" && kind == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) == 0 {
		out = append(out, field.Invalid(spec.Child("externalTrafficPolicy"), s.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	return out
}

func servicePorts(list []corev1.ServicePort, kind corev1.ServiceType) field.ErrorList {
	var out field.ErrorList
	names, numbers := sets.New[string](), sets.New[string]()
	for i, p := range list {
		at := spec.Child("ports").Index(i)
		switch {
		case p.Name == "" && len(list) > 1:
			out = append(out, field.Required(at.Child("name"), ""))
		case p.Name != "" && names.Has(p.Name):
			out = append(out, field.Duplicate(at.Child("name"), p.Name))
		}
		out = append(out, dnsLabel(at.Child("name"), p.Name)...)
		names.Insert(p.Name)
		out = append(out, port(at.Child("port"), p.Port)...)
		if p.TargetPort.IntVal != 0 || p.TargetPort.StrVal != "" {
			out = append(out, portOrName(at.Child("targetPort"), p.TargetPort)...)
		}
		if p.NodePort != 0 && (kind == corev1.ServiceTypeClusterIP || kind == corev1.ServiceTypeExternalName) {
			out = append(out, field.Forbidden(at.Child("nodePort"), fmt.Sprintf("may not be used when `type` is '%s'", kind)))
		}
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		key := fmt.Sprintf("%d/%s", p.Port, protocol)
		if numbers.Has(key) {
			out = append(out, field.Duplicate(at, key))
		}
		numbers.Insert(key)
	}
	return out
}

func address(at *field.Path, text string) field.ErrorList {
	if _, err := netip.ParseAddr(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")}
	}
	return nil
}

func cidr(at *field.Path, text string) field.ErrorList {
	if _, err := netip.ParsePrefix(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")}
	}
	return nil
}

func ingress(o *networkingv1.Ingress) field.ErrorList {
	s := &o.Spec
	var out field.ErrorList
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		out = append(out, field.Invalid(spec, s.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if s.DefaultBackend != nil {
		out = append(out, backend(s.DefaultBackend, spec.Child("defaultBackend"))...)
	}
	for i, r := range s.Rules {
		at := spec.Child("rules").Index(i)
		out = append(out, host(at.Child("host"), r.Host)...)
		if r.HTTP == nil {
			continue
		}
		for j := range r.HTTP.Paths {
			out = append(out, httpPath(&r.HTTP.Paths[j], at.Child("http", "paths").Index(j))...)
		}
	}
	for i, t := range s.TLS {
		for j, h := range t.Hosts {
			out = append(out, host(spec.Child("tls").Index(i).Child("hosts").Index(j), h)...)
		}
	}
	return out
}

// host checks the host of an Ingress, which may begin with a wildcard.
func host(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return field.ErrorList{field.Invalid(at, name, "must be a DNS name, not an IP address")}
	}
	if strings.Contains(name, "*") {
		return invalid(at, name, validation.IsWildcardDNS1123Subdomain(name))
	}
	return invalid(at, name, validation.IsDNS1123Subdomain(name))
}

func httpPath(p *networkingv1.HTTPIngressPath, at *field.Path) field.ErrorList {
	out := backend(&p.Backend, at.Child("backend"))
	if p.PathType == nil {
		return out
	}
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !strings.HasPrefix(p.Path, "/") {
			return append(out, field.Invalid(at.Child("path"), p.Path, "must be an absolute path"))
		}
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, part) {
				out = append(out, field.Invalid(at.Child("path"), p.Path, fmt.Sprintf("must not contain '%s'", part)))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			out = append(out, field.Invalid(at.Child("path"), p.Path, "must be an absolute path"))
		}
	}
	return out
}

func backend(b *networkingv1.IngressBackend, at *field.Path) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(at, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return nil
	case b.Service == nil:
		return field.ErrorList{field.Required(at, "resource or service backend is required")}
	}
	s := at.Child("service")
	out := optionalName(s.Child("name"), b.Service.Name, validation.IsDNS1035Label)
	switch p := b.Service.Port; {
	case p.Name != "" && p.Number != 0:
		out = append(out, field.Invalid(s, "", "cannot set both port name & port number"))
	case p.Name != "":
		out = append(out, invalid(s.Child("port", "name"), p.Name, validation.IsValidPortName(p.Name))...)
	case p.Number != 0:
		out = append(out, port(s.Child("port", "number"), p.Number)...)
	default:
		out = append(out, field.Required(s, "port name or number is required"))
	}
	return out
}

func networkPolicy(o *networkingv1.NetworkPolicy) field.ErrorList {
	out := selector(&o.Spec.PodSelector, spec.Child("podSelector"))
	for i, r := range o.Spec.Ingress {
		at := spec.Child("ingress").Index(i)
		out = append(out, policyPorts(r.Ports, at.Child("ports"))...)
		out = append(out, policyPeers(r.From, at.Child("from"))...)
	}
	for i, r := range o.Spec.Egress {
		at := spec.Child("egress").Index(i)
		out = append(out, policyPorts(r.Ports, at.Child("ports"))...)
		out = append(out, policyPeers(r.To, at.Child("to"))...)
	}
	return out
}

func policyPorts(list []networkingv1.NetworkPolicyPort, at *field.Path) field.ErrorList {
	var out field.ErrorList
	for i, p := range list {
		if p.Port != nil {
			out = append(out, portOrName(at.Index(i).Child("port"), *p.Port)...)
		} else if p.EndPort != nil {
			out = append(out, field.Invalid(at.Index(i).Child("endPort"), *p.EndPort, "may not be specified when `port` is not specified"))
		}
	}
	return out
}

func policyPeers(list []networkingv1.NetworkPolicyPeer, at *field.Path) field.ErrorList {
	var out field.ErrorList
	for i, p := range list {
		here := at.Index(i)
		switch n := countSet(p); {
		case n == 0:
			out = append(out, field.Required(here, "must specify a peer"))
		case p.IPBlock != nil && n > 1:
			out = append(out, field.Forbidden(here, "may not specify both ipBlock and another peer"))
		case p.IPBlock != nil:
			out = append(out, cidr(here.Child("ipBlock", "cidr"), p.IPBlock.CIDR)...)
		}
		out = append(out, selector(p.PodSelector, here.Child("podSelector"))...)
		out = append(out, selector(p.NamespaceSelector, here.Child("namespaceSelector"))...)
	}
	return out
}

func selector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)
}
