// Package why says where the value of one field of one object comes from: the lines of the package that write
// it, the fields of the custom resource and of other objects behind these, and who owns the field in the
// cluster now.
//
//	in, notes, err := why.Gather(ctx, cluster, p, cr)   the live objects and inputs, or a render.Input without
//	answer, err := why.Ask(ctx, p, in, why.Question{Object: "deployment/web", Path: ".spec.replicas"})
//	answer.Text(explain.Plain, now)
//
// The package is rendered as operetta render does, so that both say the same. Nothing is written. The content
// of Secrets is masked, wherever it is.
package why
