// Package rendered reads what kubectl and Helm would install, for tests.
package rendered
