# Lists what a container needs beside a static kube-proxy: both variants of
# iptables with their extensions, the libraries they load, and the links by which
# a merged /usr finds them. Paths are relative to the root.
{
    for dir in /bin /sbin /lib /lib32 /lib64 /libx32; do
        [ -L "$dir" ] && echo "$dir"
    done
    for command in iptables ip6tables; do
        for suffix in '' -save -restore; do
            for variant in '' -nft -legacy; do
                echo "/usr/sbin/$command$variant$suffix"
            done
            echo "/etc/alternatives/$command$suffix"
        done
    done
    for object in /usr/sbin/xtables-{nft,legacy}-multi /usr/lib/*/xtables/*.so; do
        echo "$object"
        ldd "$object" | awk '/=> \//{print $3} $1 ~ /^\//{print $1}' | while read -r library; do
            readlink -f "$library"
            real=$(readlink -f "$(dirname "$library")")
            echo "$real/$(basename "$library")"
        done
    done
    echo /etc/protocols
} | sort -u | while read -r path; do
    if [ -e "$path" ] || [ -L "$path" ]; then
        echo "${path#/}"
    fi
done
