. "$(dirname "$0")/smp_lib.sh"
plan 1
mount_cgroup v2
group a
smp_null smpnull completion_nsec=20000000
N=$(devno $DEV)
python3 - "$CG/a/io.max" $N <<'P'
import os,sys,time
fd=os.open(sys.argv[1],os.O_WRONLY); n=sys.argv[2]
def t(name,f,c=1000):
    b=time.perf_counter(); [f(i) for i in range(c)]; print('#',name,(time.perf_counter()-b)/c*1e6,'us',flush=True)
def w(s):
    try: os.pwrite(fd,s.encode(),0)
    except OSError: pass
for r in range(2):
    t('getppid',lambda i:os.getppid())
    t('garbage',lambda i:w('x'))
    t('baddev',lambda i:w('0:0 rbps=1'))
    t('bad value',lambda i:w(n+' rbps=x'))
    t('rule',lambda i:w(f'{n} rbps={i+1000000}'))
    t('same rule',lambda i:w(f'{n} rbps=1000000'))
    t('on off',lambda i:w(f'{n} rbps='+('max' if i&1 else '5000000')))
P
check x true
