// Package versions holds no code, only the test that objects of v1alpha1 lose nothing where
// a second version of the API is served beside it.
//
// That version is of the test alone. It differs from v1alpha1 in each way in which versions
// differ: fields have other names, others have moved, it has one that v1alpha1 lacks, and
// lacks one that v1alpha1 has. A value that a version has no field for is kept in an annotation.
package versions
