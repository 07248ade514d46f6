cat <<'EOF' | sh
rm -rf ~
EOF
cat <<-X
	$(touch a)
	X
bash <<< "echo hi"
