// Module tools pins the programs that generate and check the code.
module github.com/weir-dev/weir/hack/tools

go 1.26.0
