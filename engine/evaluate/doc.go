// Package evaluate says what a package says of a session, as cheaply as it can: an Evaluator
// returns what Program.Evaluate returns, in every byte.
//
//	memo       what CUE said last of this resource, if the package sees the same again
//	template   what CUE made of another session of the same shape, evaluated in Go: of one
//	           session, or put together from the parts of several
//	CUE        everything else: the first sight of a shape, what is invalid, what does not translate
//
// A template is only ever an optimization. Whatever is odd falls back to CUE, and one of many answers
// of templates is compared with that of CUE: if they differ, the template is dropped, and at the third
// time all templates of the package.
//
// Shapes are in the hands of users, who may write any keys into a resource. So what templates take
// is bounded, and whoever makes many shapes pays with evaluations by CUE of their own resources.
package evaluate
